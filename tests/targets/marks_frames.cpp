// A game: 40 pictures, marked between them. In each is a step that is a frame of its own: every tenth one
// takes 30 ms, the others 2. Usage: marks_frames
#include "count.h"
#include "ctrace.h"
#include <time.h>

static void doze(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, nullptr);
}

FN void step(int number) {
    CTRACE_FRAME_BEGIN(physics, "physics");
    doze(number % 10 == 9 ? 30 : 2);
    CTRACE_END(physics);
    doze(4); // between two frames
}

FN void draw(int number) {
    CTRACE_FUNCTION_COLOUR_IN(gpu, 0xff8800);
    CTRACE_SCOPE_VALUE_COLOUR_IN(gpu, "sky", "number", number, 0x00ccff);
    CTRACE_PLOT_COLOUR("height", number * 2, 0x00ff00);
    CTRACE_MESSAGE_COLOUR(CTRACE_INFO, 0xff00ff, "picture %d", number);
    CTRACE_FRAME_COLOUR("tick", 0x0000ff);
    CTRACE_SCOPE_COLOUR("shadows", 0x33aaff);
    doze(1);
}

int main() {
    for (int number = 0; number < 40; number++) {
        step(number);
        draw(number);
        CTRACE_FRAME("picture");
    }
}
