/* A library with its own runtime. */
#include "marks.h"

static volatile long sink;

FN void marked_inner(void) {
    CTRACE_SCOPE("marked_inner");
    sink = sink + 1;
}

FN void marked_work(void) {
    CTRACE_SCOPE_IN(library, "marked_work");
    marked_inner();
}

int marked_wait_until_on(void) { return marks_wait_until_on("marked_work"); }
