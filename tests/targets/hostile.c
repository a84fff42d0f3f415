/* Functions with long names, which a test overwrites in the built file with hostile ones. */
#include "count.h"
#include <sys/prctl.h>

#define NAME(number) name_##number##_______________________________________
#define HOSTILE(number)                         \
    FN unsigned long NAME(number)(unsigned long x) { \
        KEEP(x);                                \
        return x + number;                      \
    }

HOSTILE(0)
HOSTILE(1)
HOSTILE(2)
HOSTILE(3)
HOSTILE(4)
HOSTILE(5)
HOSTILE(6)
HOSTILE(7)

int main(void) {
    unsigned long x = 0;
    prctl(PR_SET_NAME, "=\033[31m<b>\"\t");
    for (int i = 0; i < 300; i++)
        x = NAME(0)(x) + NAME(1)(x) + NAME(2)(x) + NAME(3)(x) + NAME(4)(x) + NAME(5)(x) + NAME(6)(x) + NAME(7)(x);
    return x == 1;
}
