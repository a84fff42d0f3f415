/* A plugin that unwinds the frames of its host with an unwinder of its own, as forced unwinding
 * does. Link it with -static-libgcc. */
#include <setjmp.h>
#include <stdint.h>
#include <unwind.h>

static __thread jmp_buf landing;
static __thread struct _Unwind_Exception exception;
static __thread long frames, value;

static _Unwind_Reason_Code at_frame(int version, _Unwind_Action action, _Unwind_Exception_Class class,
                                    struct _Unwind_Exception *of, struct _Unwind_Context *context,
                                    void *landing_frame) {
    if (action & _UA_END_OF_STACK)
        frames = -1000; /* the landing was not found */
    if (action & _UA_END_OF_STACK || _Unwind_GetCFA(context) > (uintptr_t)landing_frame)
        longjmp(landing, 1);
    frames++;
    return _URC_NO_REASON;
}

static __thread void *landing_frame;

/* Leaves all frames up to `plug_catch`. */
void plug_throw(long thrown) {
    value = thrown;
    frames = 0;
    _Unwind_ForcedUnwind(&exception, at_frame, landing_frame);
}

/* Returns what was thrown, and how many frames were left for it. */
long plug_catch(long (*body)(long), long argument) {
    landing_frame = __builtin_frame_address(0);
    if (setjmp(landing))
        return frames * 100 + value;
    return body(argument);
}

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames) {
    (void)context;
    ++*(long *)frames;
    return _URC_NO_REASON;
}

/* Returns the number of frames that lead here. */
long plug_walk(void) {
    long frames = 0;
    _Unwind_Backtrace(count, &frames);
    return frames;
}
