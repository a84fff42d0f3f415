/* The other translation unit of basics.c: the same runtime, scopes of the same names. */
#include "ctrace.h"

#ifdef __cplusplus
extern "C"
#endif
int second(int depth);
int second(int depth) {
    CTRACE_FUNCTION;
    CTRACE_SCOPE("leaf");
    return depth == 0 ? 0 : second(depth - 1) + 1;
}
