/* Uses a library that has its own runtime. Usage: marks_linked [CALLS=10000] */
#include "marks.h"

COUNTER(host);
COUNTER(marked_work);
COUNTER(marked_inner);

void marked_work(void);

FN void host(void) {
    CTRACE_FUNCTION;
    COUNT(host);
    marked_work();
    COUNT(marked_work);
    COUNT(marked_inner);
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 10000);
    for (long i = 0; i < calls; i++)
        host();
    SHOW(host);
    SHOW(marked_work);
    SHOW(marked_inner);
    return 0;
}
