/* The library that dl.c opens. */
#include "count.h"

COUNTER(plug_work);
COUNTER(plug_inner);

FN long plug_inner(long x) {
    COUNT(plug_inner);
    return x + 2;
}

FN long plug_work(long x) {
    COUNT(plug_work);
    return plug_inner(x) * 2;
}

void plug_show(void) {
    SHOW(plug_work);
    SHOW(plug_inner);
}
