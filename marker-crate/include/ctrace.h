/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ctrace.h: markers for C11 and C++17. Include it, mark scopes, and build as usual: there is no
 * library to link and nothing to call at start-up. `sudo ctrace attach <pid>` shows the numbers.
 *
 *     void parse(struct input *in) {
 *         CTRACE_FUNCTION;                       // the whole function, under its own name
 *         for (;;) {
 *             CTRACE_SCOPE("parse: one record"); // to the end of the block
 *             ...
 *         }
 *     }
 *
 * Macros (each is a declaration: use it where one may stand, inside a function)
 *
 *   CTRACE_FUNCTION             this scope, under the name of the function (__func__); also with ()
 *   CTRACE_SCOPE("name")        this scope, under a name of its own
 *   CTRACE_FUNCTION_IN(group)   the same in a group, which is an identifier: ctrace can choose whole
 *   CTRACE_SCOPE_IN(group, "name")    groups, and -DCTRACE_DISABLE_group compiles one out
 *   CTRACE_BEGIN(var, "name")   from here to CTRACE_END(var) or to the end of the block, whichever
 *   CTRACE_BEGIN_IN(group, var, "name")    comes first; var is an identifier of your choice
 *   CTRACE_END(var)             ends it now; a second call does nothing
 *   CTRACE_SCOPE_COLOUR("name", 0x33aaff)        a scope with a colour for tables and pictures: red, green
 *   CTRACE_FUNCTION_COLOUR(0x33aaff)             and blue, a constant. Each name with COLOUR is also there
 *   CTRACE_BEGIN_COLOUR(var, "name", 0x33aaff)   with COLOR, and with a group first as CTRACE_SCOPE_COLOUR_IN
 *   CTRACE_SCOPE_VALUE("name", "bytes", n)       a scope with a value, an integer or a float
 *   CTRACE_SCOPE_VALUE_IN(group, "name", "bytes", n)
 *   CTRACE_SCOPE_VALUE_COLOUR("name", "bytes", n, 0x33aaff)     a scope with both; also with COLOR
 *   CTRACE_SCOPE_VALUE_COLOUR_IN(group, "name", "bytes", n, 0x33aaff)
 *   CTRACE_FRAME_SCOPE("physics")                a scope whose calls are frames: for frames with a time
 *   CTRACE_FRAME_SCOPE_IN(group, "physics")      between them. CTRACE_FRAME marks frames without one
 *   CTRACE_FRAME_BEGIN(var, "physics")           from here to CTRACE_END(var), likewise
 *   CTRACE_FRAME_BEGIN_IN(group, var, "physics")
 *   CTRACE_ENABLED              1, or 0 where all of this compiles to nothing: with -DCTRACE_DISABLE,
 *                               and on anything but x86-64 Linux with gcc or clang
 *
 * Macros for points in time (each is an expression without a value)
 *
 *   CTRACE_MESSAGE("%s: %d", text, n)            a message, with the conversions of printf; the format
 *   CTRACE_MESSAGE_LEVEL(CTRACE_WARN, "...")     is a literal, and the message's name. Levels:
 *   CTRACE_MESSAGE_IN(group, level, "...")       CTRACE_TRACE, _DEBUG, _INFO, _WARN, _ERROR; 0: none
 *   CTRACE_PLOT("queue", n)                      a number that changes over time, an integer or a float
 *   CTRACE_PLOT_UNIT("load", "%", x)             with its unit, which has none of the characters ,:[]
 *   CTRACE_PLOT_IN(group, "queue", n)
 *   CTRACE_FRAME("physics")                      a frame ends, and the next one begins
 *   CTRACE_FRAME_IN(group, "physics")
 *   CTRACE_MESSAGE_COLOUR(level, 0x33aaff, "%s", text)           the same with a colour, as scopes have one; each
 *   CTRACE_MESSAGE_COLOUR_IN(group, level, 0x33aaff, "...")      is also there with COLOR
 *   CTRACE_PLOT_COLOUR("queue", n, 0x33aaff)
 *   CTRACE_PLOT_UNIT_COLOUR("load", "%", x, 0x33aaff)
 *   CTRACE_PLOT_COLOUR_IN(group, "queue", n, 0x33aaff)
 *   CTRACE_FRAME_COLOUR("physics", 0x33aaff)
 *   CTRACE_FRAME_COLOUR_IN(group, "physics", 0x33aaff)
 *
 *   CTRACE_THREAD_NAME(name)                     names this thread, as tools and ctrace show it from now on: a
 *                               text of any kind, of which 15 bytes count. It is no marker: the system call is
 *                               made whether or not somebody traces
 *
 * Locks, in C++11 and later
 *
 *   ctrace::lockable<std::mutex> pool("pool");   a mutex with a name: ctrace shows who waits for it, and who
 *                               holds it meanwhile. It has lock, try_lock and unlock, and those of shared
 *                               mutexes if M is one. Any M with a try_lock will do. A thread is taken to be able
 *                               to lock it again while it holds it if M's name has "ecursive" in it, as those
 *                               of std have, or as a specialization of ctrace::is_recursive<M> says.
 *                               The markers are in the group `locks`. Where these compile to nothing, it does
 *                               little more than call M's functions. It is another type there
 *
 * Texts, numbers and their arguments are computed only while somebody traces them. A message is
 * formatted on the stack by vsnprintf, without memory of its own. Of a message 1008 bytes count; a longer
 * one is cut between two characters, and ends in "…". All names here are literals.
 *
 * A name is a string literal (or an array with static storage in the same file). It is kept in the
 * file, and the program never reads it. A scope ends however its block is left: at its end, by return,
 * break or goto, in C++ by an exception too. longjmp skips the end; ctrace sees that from the stack
 * pointer.
 *
 * Cost
 *   Dormant (no ctrace has chosen the scope): one comparison of a 16-bit word with 0 and a branch that
 *   is not taken at the start, one test and such a branch at the end. No lock, no allocation, no
 *   thread-local storage. Some 0.3 ns.
 *   Active: two reads of the time stamp counter and 16 bytes written to the thread's own buffer (32 if
 *   it has other scopes inside). This costs some 1.1 times two bare `rdtsc`. Once in 252 calls, or in
 *   126, a function with a probe of ctrace empties the buffer; nothing else ever leaves the program.
 *   A thread gets its buffer, 4 KiB, on its first active scope. Each scope takes in the file 32 bytes,
 *   a semaphore, a nop and the name, and some 20 bytes of code on the usual path and 40 off it.
 *
 * Guarantees
 *   - No locks; system calls only at a thread's first active scope, at its end, and where a signal
 *     handler with scopes interrupted the emptying of a buffer. The program waits only for a ctrace
 *     that is behind and was not told to drop: 1 ms at most each time a buffer is full.
 *   - Scopes may run in signal handlers, even in those that interrupt a scope, in any thread, in shared
 *     libraries, in libraries opened with dlopen, in a child after fork. errno is kept.
 *   - Any number of translation units, C and C++ mixed; any optimisation level, -flto, --gc-sections;
 *     static and dynamic, position-independent or not; glibc and musl.
 *
 * Limits
 *   - musl refuses to dlopen a library with initial-exec thread-local storage: there, build such a
 *     library with -DCTRACE_TLS_MODEL='"global-dynamic"'.
 *   - A buffer is never unmapped; the next thread takes it over. A library that is closed and opened
 *     again leaves its buffers behind, 4 KiB for each thread that used an active scope of it.
 *   - _Exit, quick_exit and deadly signals do not empty the buffers. On Linux 6.16 and later ctrace
 *     reads them then; before, up to 252 calls of each thread are missing, and counted.
 *   - In a C++20 coroutine, a scope may span a suspension only if the same thread resumes it.
 *   - With more than 32 thread-specific keys in use, glibc allocates memory for a new thread's value.
 *     A thread whose very first active scope is in a signal handler that interrupts malloc might then
 *     wait for itself.
 *   - Without memory for a buffer, scopes are not recorded.
 *   - --gc-sections with binutils before 2.36: define CTRACE_NO_LINK_ORDER. (Functions with scopes are
 *     then kept if any function of their file is.)
 *   - A message in a signal handler may do what vsnprintf may there: with glibc, integers and texts.
 *   - A message with arguments takes, while it is on, 1.3 KiB of the stack and what vsnprintf needs: with
 *     glibc, 3 to 4 KiB in all. Leave messages out of code on tiny stacks, or put them into a group that
 *     is not chosen.
 *   - For USDT notes with arguments use <sys/sdt.h>: it works together with this header.
 *
 * docs/marker-format.md specifies the marker format, version 2.
 */
#ifndef CTRACE_H
#define CTRACE_H

#if !defined(CTRACE_DISABLE) && defined(__x86_64__) && defined(__LP64__) && defined(__linux__) &&      \
    defined(__ELF__) && defined(__GNUC__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
#define CTRACE_ENABLED 1
#else
#define CTRACE_ENABLED 0
#endif

#define CTRACE_JOIN_(a, b) CTRACE_JOIN2_(a, b)
#define CTRACE_JOIN2_(a, b) a##b

#if CTRACE_ENABLED

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

/* ---------------------------------------------------------------------------------------------------
 * The runtime: once for each program or library, by weak hidden definitions. The linker keeps the
 * first. Names carry the version of the shared layout: raise it with any change to that.
 * ------------------------------------------------------------------------------------------------- */

#ifdef __cplusplus
#define CTRACE_API_ inline
extern "C" {
#else
#define CTRACE_API_ __attribute__((__weak__))
#endif
#define CTRACE_FN_ CTRACE_API_ __attribute__((__visibility__("hidden"), __noinline__, __nothrow__, __no_instrument_function__))
#define CTRACE_COLD_ CTRACE_FN_ __attribute__((__cold__))
#define CTRACE_INLINE_ static inline __attribute__((__always_inline__, __unused__, __nothrow__, __no_instrument_function__))
#define CTRACE_VAR_ __attribute__((__weak__, __visibility__("hidden")))
#define CTRACE_UNLIKELY_(x) __builtin_expect(!!(x), 0)

#ifndef CTRACE_TLS_MODEL
#define CTRACE_TLS_MODEL "initial-exec"
#endif

enum {
    CTRACE_FIRST_ = 64,        /* offset of the first slot */
    CTRACE_LAST_ = 4096 - 16,  /* and of the last */
    CTRACE_SIZE_ = 4096,
    CTRACE_PATIENCE_ = 1 << 20, /* 65,000 slots */
    CTRACE_NEAR_ = 1 << 19,    /* bytes from the stack pointer in the buffer */
    CTRACE_LONGEST_ = 252,     /* bytes of a name that is known only at run time */
    CTRACE_LONGEST_TEXT_ = 1008, /* bytes of a message */
    CTRACE_LONGEST_LOCK_ = 63, /* bytes of the name of a lock */
    CTRACE_BEGINS_ = 1 << 2,   /* kinds of slots before an entry: a name begins, */
    CTRACE_GOES_ON_ = 2 << 2,  /* it goes on, */
    CTRACE_FILLER_ = 3 << 2,   /* nothing, */
    CTRACE_VALUE_ = 4 << 2,    /* a value; */
    CTRACE_LONG_ = 4 << 2,     /* the difference of the first two where word 0 has bytes of the name, too */
    CTRACE_SAMPLE_ = 7 << 2,   /* the kind of the entry of a point with its small value */
    CTRACE_PIECE_ = 15,        /* bytes of a name in a slot: 8 in word 0, the others in word 1 */
    CTRACE_ENDS_ = 0,          /* why a buffer is emptied: nobody writes any more; */
    CTRACE_SURVEYED_ = 1,      /* it is full and written, with its whole calls counted; */
    CTRACE_LATE_ = 2,          /* or the wait for its writers is over */
    CTRACE_COLOUR_FLAG_ = 16,  /* a flag of a site: its group is followed by a colour */
    CTRACE_FRAME_SHAPE_ = 3,   /* the shape of a frame mark, and of a scope whose calls are frames */
    CTRACE_TSC_ = 1,           /* clocks */
    CTRACE_MONOTONIC_ = 2
};
#define CTRACE_MAGIC_ UINT64_C(0x0162656361727463) /* "ctraceb" 1 */

struct ctrace_c1_buffer {
    uint64_t magic;
    struct ctrace_c1_buffer *next;
    uint32_t tid;
    uint32_t position;
    struct ctrace_c1_buffer *nested;
    uint64_t events;
    uint8_t clock;
    uint8_t flushing;
    uint16_t whole;
    uint8_t reserved[4];
    uint64_t batch;
    uint64_t stack;
    uint64_t slots[252][2];
};

/* The two sites, the entry of `ctrace_runtime` that names them, their USDT notes, and a call of
 * ctrace_c1_end_of_object at exit and dlclose: one group. The linker keeps one copy of it. */
#define CTRACE_ASM_SITE_(name)                                                                         \
    ".balign 16\n"                                                                                     \
    ".weak ctrace_c1_" name "\n.hidden ctrace_c1_" name "\n.type ctrace_c1_" name ", @function\n"      \
    "ctrace_c1_" name ":\n"                                                                            \
    ".byte 0x90, 0x0f,0x1f,0x44,0,0, 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n"                             \
    "ret\n"                                                                                            \
    ".size ctrace_c1_" name ", . - ctrace_c1_" name "\n"                                               \
    ".pushsection .note.stapsdt, \"?\", @note\n"                                                       \
    ".balign 4\n.long 992f - 991f, 994f - 993f, 3\n"                                                   \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                        \
    "993: .quad ctrace_c1_" name ", _.stapsdt.base, 0\n"                                               \
    ".asciz \"ctrace\", \"" name "\", \"8@%rdi\"\n"                                                    \
    "994: .balign 4\n"                                                                                 \
    ".popsection\n"

__asm__(".ifndef ctrace_c1_runtime\n"
        ".pushsection .text.ctrace_c1, \"axG\", @progbits, ctrace_c1, comdat\n"
        CTRACE_ASM_SITE_("flush")
        CTRACE_ASM_SITE_("register")
        ".popsection\n"
        ".pushsection ctrace_runtime, \"aG\", @progbits, ctrace_c1, comdat\n"
        ".balign 32\n"
        ".weak ctrace_c1_runtime\n.hidden ctrace_c1_runtime\n.type ctrace_c1_runtime, @object\n"
        "ctrace_c1_runtime:\n"
        ".long 2, ctrace_c1_flush - ., ctrace_c1_register - ., ctrace_c1_list - ., 991f - ., 0, 0, 0\n"
        ".size ctrace_c1_runtime, . - ctrace_c1_runtime\n"
        ".popsection\n"
        /* No other segment of the file may share the page where semaphores begin (with lld the one
         * before does, which is writable while the program is loaded): the kernel would raise them
         * there. An unused semaphore aligns the section to a page. */
        ".pushsection .probes, \"awG\", @progbits, ctrace_c1, comdat\n"
        ".p2align 12\n"
        ".short 0\n"
        ".popsection\n"
        ".pushsection .rodata.ctrace_c1, \"aG\", @progbits, ctrace_c1, comdat\n"
        "991: .asciz \"c 0.1.0\"\n"
        ".popsection\n"
        ".pushsection .fini_array.00101, \"awG\", @fini_array, ctrace_c1, comdat\n"
        ".balign 8\n"
        ".quad ctrace_c1_end_of_object\n"
        ".popsection\n"
        ".endif\n"
        ".ifndef _.stapsdt.base\n"
        ".pushsection .stapsdt.base, \"axG\", @progbits, .stapsdt.base, comdat\n"
        ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"
        ".popsection\n"
        ".endif\n");

extern const char ctrace_c1_runtime[] __attribute__((__visibility__("hidden")));
__attribute__((__visibility__("hidden"), __nothrow__)) void ctrace_c1_flush(struct ctrace_c1_buffer *buffer);
__attribute__((__visibility__("hidden"), __nothrow__)) void ctrace_c1_register(struct ctrace_c1_buffer *buffer);

/* All buffers, linked by `next`. The list only grows, at its head. */
CTRACE_VAR_ struct ctrace_c1_buffer *ctrace_c1_list = 0;
/* The thread's own buffer. */
CTRACE_VAR_ __thread struct ctrace_c1_buffer *ctrace_c1_mine __attribute__((__tls_model__(CTRACE_TLS_MODEL))) = 0;
/* The clock of new buffers; 0 while unknown. */
CTRACE_VAR_ uint8_t ctrace_c1_clock = 0;
/* The key whose destructor ends a thread, plus 1; 0 before it is made; -1 once it is deleted. */
CTRACE_VAR_ int64_t ctrace_c1_key = 0;

#if defined(__GLIBC__) && (__GLIBC__ < 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 34))
/* These are in libpthread, which need not be linked: then no thread ends. */
#pragma weak pthread_key_create
#pragma weak pthread_key_delete
#pragma weak pthread_setspecific
#define CTRACE_HAS_KEYS_ (pthread_key_create && pthread_key_delete && pthread_setspecific)
#else
#define CTRACE_HAS_KEYS_ 1
#endif

/* Makes a system call that does not change errno. */
CTRACE_INLINE_ long ctrace_syscall_(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = -1; /* mmap: no file */
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Names the calling thread. A name of more than 15 bytes is cut between two characters. */
CTRACE_INLINE_ void ctrace_name_thread_(const char *name) {
    char cut[16] = {0};
    int length = 0;
    while (length < 16 && name[length]) length++;
    if (length == 16)
        for (length = 15; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;) length--;
    __builtin_memcpy(cut, name, (size_t)length);
    ctrace_syscall_(157 /* prctl */, 15 /* PR_SET_NAME */, (long)cut, 0, 0);
}

/* Orders stores for the thread's own signal handlers. On x86-64 others see the same order. */
#define CTRACE_ORDER_() __asm__ volatile("" ::: "memory")

/* Takes slots of so many bytes. Returns the first one's offset, or one beyond the slots if there is
 * none. One instruction does it, so that the thread's signal handlers take other slots. */
CTRACE_INLINE_ uint64_t ctrace_take_some_(struct ctrace_c1_buffer *buffer, uint32_t bytes) {
    uint64_t position = bytes; /* the instruction zeroes what is above its 32 bits */
    __asm__ volatile("xadd{l %k0, %1| %1, %k0}" : "+r"(position), "+m"(buffer->position) : : "memory", "cc");
    return position;
}

CTRACE_INLINE_ uint64_t ctrace_take_(struct ctrace_c1_buffer *buffer) {
    return ctrace_take_some_(buffer, 16);
}

CTRACE_INLINE_ void ctrace_put_(struct ctrace_c1_buffer *buffer, uint64_t position, uint64_t first, uint64_t tag) {
    uint64_t *slot = (uint64_t *)(void *)((char *)buffer + position);
    __atomic_store_n(&slot[0], first, __ATOMIC_RELAXED);
    __atomic_store_n(&slot[1], tag, __ATOMIC_RELEASE);
}

CTRACE_INLINE_ void ctrace_write_(struct ctrace_c1_buffer *buffer, uint64_t position, uint64_t time,
                                  uint64_t stack, uint64_t tag) {
    ctrace_put_(buffer, position, (time << 16 >> 16) | stack << 48, tag);
}

CTRACE_INLINE_ uint64_t ctrace_now_(uint8_t clock) {
    if (clock == CTRACE_TSC_) return __builtin_ia32_rdtsc();
    /* If the TSC is no clock, the C library makes a system call as well. */
    struct { int64_t seconds, nanoseconds; } now;
    ctrace_syscall_(228 /* clock_gettime */, 1 /* CLOCK_MONOTONIC */, (long)&now, 0, 0);
    return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
}

/* Chooses the TSC if it runs evenly through all sleep states and may be read. */
CTRACE_INLINE_ uint8_t ctrace_choose_clock_(void) {
    uint32_t a = 0x80000000u, b, c, d;
    int mode = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    if (a < 0x80000007u) return CTRACE_MONOTONIC_;
    a = 0x80000007u;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    ctrace_syscall_(157 /* prctl */, 25 /* PR_GET_TSC */, (long)&mode, 0, 0);
    return (d >> 8 & 1) && mode != 2 /* PR_TSC_SIGSEGV */ ? CTRACE_TSC_ : CTRACE_MONOTONIC_;
}

/* Counts the slots that hold a whole call. Returns whether every taken slot has been written: false in
 * a signal handler that interrupted a writer. */
CTRACE_INLINE_ int ctrace_survey_(const struct ctrace_c1_buffer *buffer, uint16_t *calls) {
    uint32_t position = buffer->position;
    uint64_t whole = 0, empty = 0;
    int i;
    for (i = 0; i < 252; i++) {
        uint64_t tag = buffer->slots[i][1];
        whole += tag >> 1 & 1;
        empty += tag == 0;
    }
    *calls = (uint16_t)whole;
    return empty == 0 || (position < CTRACE_SIZE_ && empty <= (CTRACE_SIZE_ - position) / 16);
}

CTRACE_INLINE_ uint64_t ctrace_hold_signals_(void) {
    uint64_t all = ~UINT64_C(0), before = 0;
    ctrace_syscall_(14 /* rt_sigprocmask */, 2 /* SIG_SETMASK */, (long)&all, (long)&before, 8);
    return before;
}
CTRACE_INLINE_ void ctrace_release_signals_(uint64_t before) {
    ctrace_syscall_(14 /* rt_sigprocmask */, 2 /* SIG_SETMASK */, (long)&before, 0, 8);
}

/* Empties the buffer, then the nested one that signal handlers wrote to meanwhile. They see a full
 * buffer as full; while another one is emptied, they must not run at all. A nested buffer waits for a
 * writer that has not finished, except at the thread's end. */
CTRACE_COLD_ void ctrace_c1_empty(struct ctrace_c1_buffer *buffer, int why) {
    struct ctrace_c1_buffer *first = buffer;
    for (; buffer && buffer->magic == CTRACE_MAGIC_ && !buffer->flushing; buffer = buffer->nested) {
        uint32_t position;
        uint64_t signals = 0;
        uint16_t whole;
        int hold;
        if (buffer != first && why != CTRACE_ENDS_ && !ctrace_survey_(buffer, &whole)) return;
        buffer->flushing = 1;
        CTRACE_ORDER_();
        position = buffer->position;
        hold = position > CTRACE_FIRST_ && position < CTRACE_SIZE_;
        if (hold) signals = ctrace_hold_signals_();
        if (position > CTRACE_FIRST_) {
            if (why != CTRACE_SURVEYED_ || buffer != first || hold) ctrace_survey_(buffer, &buffer->whole);
            ctrace_c1_flush(buffer);
            CTRACE_ORDER_();
            position = buffer->position;
            if (position > CTRACE_SIZE_) position = CTRACE_SIZE_;
            buffer->events += (position - CTRACE_FIRST_) / 16 + buffer->whole;
            buffer->whole = 0;
            __builtin_memset(buffer->slots, 0, sizeof buffer->slots);
            CTRACE_ORDER_();
            buffer->batch += 1;
            CTRACE_ORDER_();
            buffer->position = CTRACE_FIRST_;
        }
        CTRACE_ORDER_();
        buffer->flushing = 0;
        CTRACE_ORDER_();
        if (hold) ctrace_release_signals_(signals);
    }
}

/* The destructor of the key, called at a thread's end. */
CTRACE_COLD_ void ctrace_c1_end_of_thread(void *unused) {
    struct ctrace_c1_buffer *buffer = ctrace_c1_mine;
    (void)unused;
    ctrace_c1_mine = 0;
    CTRACE_ORDER_();
    ctrace_c1_empty(buffer, CTRACE_ENDS_);
    while (buffer && buffer->magic == CTRACE_MAGIC_) {
        struct ctrace_c1_buffer *nested = buffer->nested;
        buffer->nested = 0;
        __atomic_store_n(&buffer->tid, 0, __ATOMIC_RELEASE);
        buffer = nested;
    }
}

/* Called when the process exits or the library is closed. Nobody may call into it afterwards. */
CTRACE_COLD_ __attribute__((__used__)) void ctrace_c1_end_of_object(void) {
    int64_t key = __atomic_exchange_n(&ctrace_c1_key, -1, __ATOMIC_ACQ_REL);
    if (key > 0) pthread_key_delete((pthread_key_t)(key - 1));
    ctrace_c1_empty(ctrace_c1_mine, CTRACE_ENDS_);
}

/* Makes ctrace_c1_end_of_thread run when this thread ends. */
CTRACE_INLINE_ void ctrace_watch_thread_(void) {
    int64_t key = __atomic_load_n(&ctrace_c1_key, __ATOMIC_ACQUIRE);
    if (!CTRACE_HAS_KEYS_ || key < 0) return;
    if (key == 0) {
        pthread_key_t fresh;
        if (pthread_key_create(&fresh, ctrace_c1_end_of_thread) != 0) return;
        if (__atomic_compare_exchange_n(&ctrace_c1_key, &key, (int64_t)fresh + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            key = (int64_t)fresh + 1;
        else
            pthread_key_delete(fresh); /* another thread was first */
        if (key < 0) return;
    }
    pthread_setspecific((pthread_key_t)(key - 1), ctrace_c1_mine);
}

/* Returns a buffer whose thread has ended, else a new one; 0 without memory. */
CTRACE_INLINE_ struct ctrace_c1_buffer *ctrace_any_buffer_(uint32_t tid) {
    struct ctrace_c1_buffer *buffer = __atomic_load_n(&ctrace_c1_list, __ATOMIC_ACQUIRE);
    long address;
    for (; buffer; buffer = buffer->next) {
        uint32_t nobody = 0;
        if (__atomic_load_n(&buffer->magic, __ATOMIC_ACQUIRE) == CTRACE_MAGIC_ &&
            __atomic_load_n(&buffer->tid, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&buffer->tid, &nobody, tid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return buffer;
    }
    address = ctrace_syscall_(9 /* mmap */, 0, CTRACE_SIZE_, 3 /* read, write */, 0x22 /* private, anonymous */);
    if (address < 0 && address > -4096) return 0;
    ctrace_syscall_(28 /* madvise */, address, CTRACE_SIZE_, 18 /* MADV_WIPEONFORK */, 0);
    return (struct ctrace_c1_buffer *)address;
}

/* Puts a buffer for this thread at *place (a thread's pointer, or `nested`). A fork has wiped an
 * existing one. All signals are blocked, so that their handlers find the place unchanged or done. */
CTRACE_COLD_ struct ctrace_c1_buffer *ctrace_c1_prepare(struct ctrace_c1_buffer **place) {
    int saved_errno = errno;
    uint64_t signals = ctrace_hold_signals_();
    struct ctrace_c1_buffer *buffer = *place;
    if (!buffer || buffer->magic != CTRACE_MAGIC_) {
        uint32_t tid = (uint32_t)ctrace_syscall_(186 /* gettid */, 0, 0, 0, 0);
        uint8_t clock = __atomic_load_n(&ctrace_c1_clock, __ATOMIC_RELAXED);
        if (!clock) __atomic_store_n(&ctrace_c1_clock, clock = ctrace_choose_clock_(), __ATOMIC_RELAXED);
        if (!buffer) buffer = ctrace_any_buffer_(tid);
        if (buffer && buffer->magic != CTRACE_MAGIC_) {
            struct ctrace_c1_buffer *head = __atomic_load_n(&ctrace_c1_list, __ATOMIC_ACQUIRE), *other;
            buffer->tid = tid;
            buffer->clock = clock;
            buffer->whole = 0;
            buffer->position = CTRACE_FIRST_;
            __atomic_store_n(&buffer->magic, CTRACE_MAGIC_, __ATOMIC_RELEASE);
            /* After a fork it may be the last of the list, or be cut off from it. */
            for (other = head; other && other != buffer;) other = other->next;
            while (!other) {
                buffer->next = head;
                if (__atomic_compare_exchange_n(&ctrace_c1_list, &head, buffer, 0, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
                    break;
            }
        }
        if (buffer) {
            buffer->stack = (uint64_t)__builtin_frame_address(0);
            *place = buffer;
            if (place == &ctrace_c1_mine) ctrace_watch_thread_();
            ctrace_c1_register(buffer);
        }
    }
    ctrace_release_signals_(signals);
    errno = saved_errno;
    return buffer;
}

/* What comes before an entry: values, and a text if `text` is not 0. */
struct ctrace_c1_data {
    const uint64_t *values;
    const char *text;
    uint32_t count;
    uint32_t length;
    int is_name; /* the text is the name of a scope */
};

/* Returns up to 7 bytes of a text in the bits of word 1 for them and their number. */
CTRACE_INLINE_ uint64_t ctrace_bytes_(const char *text, uint32_t length) {
    uint64_t bytes = 0;
    uint32_t low, high, i;
    if (length < 7) {
        for (i = length; i--;) bytes = bytes << 8 | (unsigned char)text[i];
    } else {
        __builtin_memcpy(&low, text, 4);
        __builtin_memcpy(&high, text + 3, 4);
        bytes = low | (uint64_t)high << 24;
    }
    return bytes << 8 | (uint64_t)length << 5;
}

/* Writes a piece of a text to a slot. The first of 8 bytes and more are word 0, inverted. That must not be 0,
 * which only bytes can cause that are no text: one of them becomes another. */
CTRACE_INLINE_ void ctrace_write_piece_(struct ctrace_c1_buffer *buffer, uint64_t position, uint64_t time,
                                        uint64_t stack, uint64_t kind, const char *text, uint32_t length) {
    uint64_t first;
    if (length < 8) {
        ctrace_write_(buffer, position, time, stack, ctrace_bytes_(text, length) | kind);
        return;
    }
    __builtin_memcpy(&first, text, 8);
    first = ~first;
    ctrace_put_(buffer, position, first ? first : 1, ctrace_bytes_(text + 8, length - 8) | (kind + CTRACE_LONG_));
}

/* Writes an entry, and before it the slots of its values and of its text. */
CTRACE_INLINE_ void ctrace_write_with_(struct ctrace_c1_buffer *buffer, uint64_t position, uint64_t time,
                                       uint64_t stack, uint64_t tag, const struct ctrace_c1_data *data) {
    const char *text = data->text;
    uint64_t kind = CTRACE_BEGINS_;
    uint32_t i, length = data->length;
    for (i = 0; i < data->count; i++, position += 16)
        ctrace_write_(buffer, position, time, data->values[i], data->values[i] >> 16 << 16 | CTRACE_VALUE_);
    if (text) do {
        uint32_t piece = length < CTRACE_PIECE_ ? length : (uint32_t)CTRACE_PIECE_;
        ctrace_write_piece_(buffer, position, time, stack, kind, text, piece);
        kind = CTRACE_GOES_ON_;
        text += piece;
        length -= piece;
        position += 16;
    } while (length);
    /* Writing the name is not part of the scope. */
    ctrace_write_(buffer, position, data->is_name ? ctrace_now_(buffer->clock) : time, stack, tag);
}

/* Returns the bytes of the slots of an entry and of what comes before it. */
CTRACE_INLINE_ uint32_t ctrace_slots_of_(const struct ctrace_c1_data *data) {
    uint32_t pieces = data->length ? (data->length + CTRACE_PIECE_ - 1) / CTRACE_PIECE_ : 1;
    return 16 * (data->count + (data->text ? pieces : 0) + 1);
}

/* Writes an event that found no slot, or the last one. `position` is the slot taken in the thread's
 * own buffer; below 64 there is none. `data` is 0, or that of an entry which needs more slots than one: it is not
 * written to a last slot that was taken. Returns 0 if the event had to be dropped. */
CTRACE_FN_ int ctrace_c1_slow_with(uint64_t position, uint64_t stack, uint64_t tag,
                                   const struct ctrace_c1_data *data) {
    uint64_t time = position < CTRACE_FIRST_ ? 0 : ctrace_now_(CTRACE_TSC_);
    uint32_t bytes = data ? ctrace_slots_of_(data) : 16;
    struct ctrace_c1_buffer **place = &ctrace_c1_mine;
    int written = 0;
    for (;;) {
        struct ctrace_c1_buffer *buffer = *place;
        if (!buffer || buffer->magic != CTRACE_MAGIC_) {
            buffer = ctrace_c1_prepare(place);
            if (!buffer) return 0;
        }
        if (position < CTRACE_FIRST_) position = ctrace_take_some_(buffer, bytes);
        if (position >= CTRACE_FIRST_ && position <= CTRACE_LAST_) {
            uint64_t now = time ? time : ctrace_now_(buffer->clock);
            if (position + bytes > CTRACE_SIZE_) {
                /* An entry and what comes before it are in one buffer: what is left of this one stays
                 * empty. */
                for (; position <= CTRACE_LAST_; position += 16)
                    ctrace_write_(buffer, position, now, stack, CTRACE_FILLER_);
            } else {
                if (data)
                    ctrace_write_with_(buffer, position, now, stack, tag, data);
                else
                    ctrace_write_(buffer, position, now, stack, tag);
                position += bytes - 16; /* of the entry */
                written = 1;
            }
        }
        if (position >= CTRACE_LAST_) {
            /* The buffer is full. It stays so while it is being emptied, and while this handler interrupts
             * an unfinished writer. That wait is limited, as the handler may never return, and it
             * needs another buffer for new events. */
            uint16_t whole;
            int surveyed = !buffer->flushing && ctrace_survey_(buffer, &whole);
            if (surveyed) buffer->whole = whole;
            if (!buffer->flushing && (surveyed || position > CTRACE_PATIENCE_ ||
                                      (!written && !ctrace_c1_prepare(&buffer->nested)))) {
                ctrace_c1_empty(buffer, surveyed ? CTRACE_SURVEYED_ : CTRACE_LATE_);
            } else if (buffer->flushing || buffer->position >= CTRACE_SIZE_) {
                if (position > CTRACE_PATIENCE_) buffer->position = CTRACE_SIZE_;
                place = &buffer->nested;
            } /* else a handler has emptied it during the survey */
        }
        if (written) return 1;
        position = 0;
    }
}

CTRACE_COLD_ int ctrace_c1_slow(uint64_t position, uint64_t stack, uint64_t tag) {
    return ctrace_c1_slow_with(position, stack, tag, 0);
}

/* Returns whether a slot was taken, and not the last one. */
CTRACE_INLINE_ int ctrace_is_plain_(uint64_t position) {
    return position - CTRACE_FIRST_ < CTRACE_LAST_ - CTRACE_FIRST_;
}

/* Exchanges word 1 of a slot if it is unchanged, by one instruction like ctrace_take_. */
CTRACE_INLINE_ int ctrace_exchange_(uint64_t *word, uint64_t was, uint64_t is) {
    int done;
    __asm__ volatile("cmpxchg{q %3, %2| %2, %3}" : "=@ccz"(done), "+a"(was), "+m"(*word) : "r"(is) : "memory");
    return done;
}

/* Makes a whole call of the entry in the slot before `position`, if it is of this scope, near the
 * buffer's stack pointer, and short. A signal handler meanwhile may have emptied the buffer. Then the
 * slot holds something else, or an entry of the same scope at another time, whose word is restored. */
CTRACE_INLINE_ int ctrace_complete_(struct ctrace_c1_buffer *buffer, uint64_t time, uint64_t sp, uint64_t site,
                                    uint64_t tag) {
    uint32_t position = __atomic_load_n(&buffer->position, __ATOMIC_RELAXED);
    uint64_t *slot = (uint64_t *)(void *)((char *)buffer + position - 16);
    uint64_t distance = (sp & ~UINT64_C(15)) - buffer->stack + CTRACE_NEAR_;
    uint64_t first, duration, whole;
    if (position - (CTRACE_FIRST_ + 16) > (uint32_t)(CTRACE_LAST_ - (CTRACE_FIRST_ + 16))) return 0;
    if (distance << 27 >> 47) return 0; /* of 37 bits, those above 20 */
    first = __atomic_load_n(&slot[0], __ATOMIC_RELAXED);
    if ((first >> 44 ^ sp) & 0xffff0) return 0;
    duration = (time - first) << 16; /* of 48 bits, at the top */
    if (duration >> 33) return 0;
    whole = site + 2 + (duration << 31);
    if (!ctrace_exchange_(&slot[1], tag, whole)) return 0;
    if (CTRACE_UNLIKELY_(__atomic_load_n(&slot[0], __ATOMIC_RELAXED) != first) &&
        ctrace_exchange_(&slot[1], whole, tag))
        return 0;
    buffer->whole++; /* for readers from outside */
    return 1;
}

/* Returns the data for the exit of a scope: bits 1-36 of the stack pointer, and in bits 37-63 the
 * site's distance from ctrace_c1_runtime. */
CTRACE_INLINE_ uint64_t ctrace_handle_(uintptr_t site, uintptr_t sp) {
    return ((uint64_t)(site - (uintptr_t)ctrace_c1_runtime) << 32) + (sp & UINT64_C(0x1fffffffff)) + 1;
}

/* Returns word 1 of an entry. */
CTRACE_INLINE_ uint64_t ctrace_tag_(uintptr_t site, uint64_t sp) {
    return site | sp >> 20 << 47;
}

CTRACE_COLD_ uint64_t ctrace_c1_enter_slowly(uint64_t position, uintptr_t site, uintptr_t sp) {
    return ctrace_c1_slow(position, sp >> 4, ctrace_tag_(site, sp)) ? ctrace_handle_(site, sp) : 0;
}

/* Writes the entry of a scope. Returns its handle, or 0 if nothing was written. */
CTRACE_FN_ uint64_t ctrace_c1_enter(uintptr_t site, uintptr_t sp) {
    struct ctrace_c1_buffer *buffer = ctrace_c1_mine;
    uint64_t position = 0;
    if (!CTRACE_UNLIKELY_(!buffer || buffer->clock != CTRACE_TSC_)) {
        position = ctrace_take_(buffer);
        if (!CTRACE_UNLIKELY_(!ctrace_is_plain_(position))) {
            ctrace_write_(buffer, position, __builtin_ia32_rdtsc(), sp >> 4, ctrace_tag_(site, sp));
            return ctrace_handle_(site, sp);
        }
    }
    return ctrace_c1_enter_slowly(position, site, sp);
}

/* Writes the entry of a scope whose name is known only at run time: of the name, 252 bytes at most. */
CTRACE_FN_ uint64_t ctrace_c1_enter_named(uintptr_t site, uintptr_t sp, const char *name) {
    struct ctrace_c1_data data = {0, name ? name : "", 0, 0, 1};
    while (data.length < CTRACE_LONGEST_ && data.text[data.length]) data.length++;
    return ctrace_c1_slow_with(0, sp >> 4, ctrace_tag_(site, sp), &data) ? ctrace_handle_(site, sp) : 0;
}

/* Writes an entry with a value. */
CTRACE_FN_ uint64_t ctrace_c1_enter_valued(uintptr_t site, uintptr_t sp, uint64_t value) {
    struct ctrace_c1_data data = {&value, 0, 1, 0, 0};
    return ctrace_c1_slow_with(0, sp >> 4, ctrace_tag_(site, sp), &data) ? ctrace_handle_(site, sp) : 0;
}

/* Whether a float of these bits is an integer of less than 16 bits, which is put into `small`. No
 * floating-point instruction finds out, as these may raise the program's floating-point exceptions. */
CTRACE_INLINE_ int ctrace_small_float_(uint64_t bits, int64_t *small) {
    uint64_t exponent = (bits >> 52 & 0x7ff) - 1023, mantissa = bits << 12 >> 12 | UINT64_C(1) << 52;
    *small = 0;
    if (bits == 0) return 1;
    if (exponent >= 15 || mantissa << (12 + exponent)) return 0;
    *small = (int64_t)(mantissa >> (52 - exponent));
    if (bits >> 63) *small = -*small;
    return 1;
}

/* Writes the value of a plot. A small integer, also as a float, is in the slot of the entry, in place of those
 * bits of the stack pointer that the buffer's tells as well. */
CTRACE_FN_ void ctrace_c1_plot(uintptr_t site, uintptr_t sp, uint64_t value, int is_float) {
    struct ctrace_c1_buffer *buffer = ctrace_c1_mine;
    struct ctrace_c1_data data = {&value, 0, 1, 0, 0};
    int64_t small = (int64_t)value;
    uint64_t position = 0;
    int is_small = is_float ? ctrace_small_float_(value, &small) : small == (int16_t)small;
    if (is_small && buffer && buffer->clock == CTRACE_TSC_ &&
        (sp & ~UINT64_C(15)) - buffer->stack + CTRACE_NEAR_ < 2 * CTRACE_NEAR_) {
        position = ctrace_take_(buffer);
        if (!CTRACE_UNLIKELY_(!ctrace_is_plain_(position))) {
            uint64_t tag = site | CTRACE_SAMPLE_ | (uint64_t)is_float << 47 | (uint64_t)small << 48;
            ctrace_write_(buffer, position, __builtin_ia32_rdtsc(), sp >> 4, tag);
            return;
        }
    }
    ctrace_c1_slow_with(position, sp >> 4, ctrace_tag_(site, sp), &data);
}

/* Writes a message of so many bytes, 1008 at most. */
CTRACE_FN_ void ctrace_c1_text(uintptr_t site, uintptr_t sp, const char *text, uint64_t length) {
    struct ctrace_c1_data data = {0, text, 0, (uint32_t)length, 0};
    ctrace_c1_slow_with(0, sp >> 4, ctrace_tag_(site, sp), &data);
}

#ifdef __cplusplus
/* Writes a lock and its name. A name of more than 63 bytes is cut between two characters, and ends in "…". */
CTRACE_FN_ uint64_t ctrace_c1_told(uintptr_t site, uintptr_t sp, uint64_t lock, const char *name) {
    char room[CTRACE_LONGEST_LOCK_];
    struct ctrace_c1_data data = {&lock, name, 1, 0, 0};
    while (data.length < CTRACE_LONGEST_LOCK_ && name[data.length]) data.length++;
    if (name[data.length]) {
        uint32_t length = CTRACE_LONGEST_LOCK_ - 3;
        while (length > 0 && (name[length] & 0xc0) == 0x80) length--;
        __builtin_memcpy(room, name, length);
        __builtin_memcpy(room + length, "\xe2\x80\xa6" /* … */, 3);
        data.text = room;
        data.length = length + 3;
    }
    return (uint64_t)ctrace_c1_slow_with(0, sp >> 4, ctrace_tag_(site, sp), &data);
}
#endif

/* Formats a message and writes it. If it cannot be formatted, the format is its text. */
CTRACE_FN_ __attribute__((__format__(__printf__, 3, 4), __nonnull__)) void
ctrace_c1_message(uintptr_t site, uintptr_t sp, const char *format, ...) {
    char room[CTRACE_LONGEST_TEXT_ + 1];
    int saved_errno = errno, length;
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    length = __builtin_vsnprintf(room, sizeof room, format, arguments);
    __builtin_va_end(arguments);
    if (length < 0) {
        length = (int)__builtin_strlen(format);
        __builtin_memcpy(room, format, (size_t)(length < (int)sizeof room ? length : (int)sizeof room));
    }
    if (length > CTRACE_LONGEST_TEXT_) {
        length = CTRACE_LONGEST_TEXT_ - 3;
        while (length > CTRACE_LONGEST_TEXT_ - 6 && (room[length] & 0xc0) == 0x80) length--;
        __builtin_memcpy(room + length, "\xe2\x80\xa6" /* … */, 3);
        length += 3;
    }
    ctrace_c1_text(site, sp, room, (uint32_t)length);
    errno = saved_errno;
}

/* Writes an exit to its own slot. */
CTRACE_FN_ void ctrace_c1_append(struct ctrace_c1_buffer *buffer, uint64_t time, uint64_t handle, uint64_t tag) {
    uint64_t position = ctrace_take_(buffer);
    if (CTRACE_UNLIKELY_(!ctrace_is_plain_(position)))
        ctrace_c1_slow(position, handle >> 4, tag | 1);
    else
        ctrace_write_(buffer, position, time, handle >> 4, tag | 1);
}

CTRACE_FN_ void ctrace_c1_leave(uint64_t handle) {
    uintptr_t site = (uintptr_t)ctrace_c1_runtime + (uintptr_t)((int64_t)handle >> 32 & -32);
    uint64_t tag = ctrace_tag_(site, handle), time;
    struct ctrace_c1_buffer *buffer = ctrace_c1_mine;
    if (CTRACE_UNLIKELY_(!buffer || buffer->clock != CTRACE_TSC_)) {
        ctrace_c1_slow(0, handle >> 4, tag | 1);
        return;
    }
    time = __builtin_ia32_rdtsc();
    if (!ctrace_complete_(buffer, time, handle, site, tag)) ctrace_c1_append(buffer, time, handle, tag);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---------------------------------------------------------------------------------------------------
 * A scope
 * ------------------------------------------------------------------------------------------------- */

/* Its handle. */
#ifdef __cplusplus
namespace ctrace_c1 {
class guard {
    uint64_t handle;

  public:
    __attribute__((__always_inline__)) explicit guard(uint64_t h) noexcept : handle(h) {}
    __attribute__((__always_inline__)) ~guard() {
        if (CTRACE_UNLIKELY_(handle)) ctrace_c1_leave(handle);
    }
    __attribute__((__always_inline__)) void end() noexcept {
        if (CTRACE_UNLIKELY_(handle)) ctrace_c1_leave(handle);
        handle = 0;
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
};
} // namespace ctrace_c1
#define CTRACE_GUARD_(var, value) __attribute__((__unused__)) ::ctrace_c1::guard var(value)
#define CTRACE_END(var) var.end()
#else
CTRACE_INLINE_ void ctrace_end_(const uint64_t *handle) {
    if (CTRACE_UNLIKELY_(*handle)) ctrace_c1_leave(*handle);
}
#define CTRACE_GUARD_(var, value) __attribute__((__unused__, __cleanup__(ctrace_end_))) uint64_t var = (value)
#define CTRACE_END(var) ((void)(ctrace_end_(&var), var = 0))
#endif

/* The data below are not code, so they must not prevent inlining of a function. */
#if __GNUC__ >= 9 || defined(__clang__)
#define CTRACE_ASM_INLINE_ __inline__
#else
#define CTRACE_ASM_INLINE_
#endif

/* "o" makes the linker drop a scope's entry exactly if it drops its function. */
#ifdef CTRACE_NO_LINK_ORDER
#define CTRACE_SITES_SECTION_ "ctrace_sites, \"a?\", @progbits"
#else
#define CTRACE_SITES_SECTION_ "ctrace_sites, \"ao?\", @progbits, .Lctrace%="
#endif

/* All data of the scope or point, in the sections of the function around it ("?"), and the test whether it is
 * on. The assembler, not the compiler, makes the data. So each copy of an inlined scope has its own,
 * and an unused copy leaves none behind. Above the flags are the shape of a point (<< 8) and the level of a
 * message (<< 16). */
#define CTRACE_ENTER_(flags, name, group, group_field)                                                 \
    CTRACE_ENTER_BY_(flags, name, group, group_field, ctrace_c1_enter(ctrace_site_, ctrace_sp_))
#define CTRACE_ENTER_BY_(flags, name, group, group_field, enter)                                       \
    __extension__({                                                                                    \
        uintptr_t ctrace_site_, ctrace_sp_;                                                            \
        unsigned char ctrace_on_;                                                                      \
        __asm__ __volatile__ CTRACE_ASM_INLINE_(                                                       \
            ".Lctrace%=:\n"                                                                            \
            ".pushsection .probes, \"aw?\", @progbits\n"                                               \
            ".balign 2\n"                                                                              \
            "991: .short 0\n"                                                                          \
            ".popsection\n"                                                                            \
            ".pushsection .text.ctrace_points, \"ax?\", @progbits\n"                                   \
            "992: nop\n"                                                                               \
            ".popsection\n"                                                                            \
            ".pushsection " CTRACE_SITES_SECTION_ "\n"                                                 \
            ".balign 32\n"                                                                             \
            "990: .long %c[head], %c[line]\n"                                                          \
            ".long %c[label] - .\n.long %c[file] - .\n.long " group_field "\n"                         \
            ".long 991b - .\n.long 992b - .\n.long .Lctrace%= - .\n"                                   \
            ".popsection\n"                                                                            \
            "{leaq 990b(%%rip), %[site]|lea %[site], [rip + 990b]}\n"                                  \
            "{cmpw $0, 991b(%%rip)|cmp word ptr [rip + 991b], 0}"                                      \
            : [site] "=r"(ctrace_site_), "=@ccne"(ctrace_on_)                                          \
            : [head] "i"(1 | (flags) << 8), [line] "i"(__LINE__), [label] "i"(name), [file] "i"(__FILE__), \
              [grp] "i"(group));                                                                       \
        CTRACE_UNLIKELY_(ctrace_on_)                                                                   \
            ? (__extension__({ __asm__ __volatile__("mov{q %%rsp, %0| %0, rsp}" : "=r"(ctrace_sp_)); }), \
               (enter))                                                                                \
            : 0;                                                                                       \
    })

#define CTRACE_SCOPE_(var, flags, name) CTRACE_GUARD_(var, CTRACE_ENTER_(flags, name, 0, "%c[grp]"))
#define CTRACE_IN_ON_(var, flags, name, group)                                                         \
    CTRACE_GUARD_(var, CTRACE_ENTER_(flags, name, group, "%c[grp] - ."))
#define CTRACE_IN_OFF_(var, flags, name, group) CTRACE_GUARD_(var, 0)
/* The same with a colour, which lies behind the group's text. So that text, an identifier or nothing, is made
 * here, and the operand for the group is the colour. */
#define CTRACE_COLOURED_(var, flags, name, group, colour)                                              \
    CTRACE_GUARD_(var, CTRACE_ENTER_((flags) | CTRACE_COLOUR_FLAG_, name, CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(group)))
#define CTRACE_COLOURED_OFF_(var, flags, name, group, colour) CTRACE_GUARD_(var, 0 * CTRACE_RGB_(colour))
#define CTRACE_BEFORE_COLOUR_(group)                                                                   \
    "993f - .\n"                                                                                       \
    ".pushsection .rodata.ctrace_colours, \"a?\", @progbits\n"                                         \
    "993: .asciz \"" group "\"\n.long %c[grp]\n"                                                       \
    ".popsection"
/* The same with a name that may be known only at run time: whether it is (`late`, a constant), what the
 * file calls the scope, and the name. */
#define CTRACE_LATE_ON_(var, late, label, group, name)                                                 \
    CTRACE_GUARD_(var, CTRACE_ENTER_BY_((late) ? 2 : 0, label, group, "%c[grp] - .",                   \
                                        (late) ? ctrace_c1_enter_named(ctrace_site_, ctrace_sp_, name) \
                                               : ctrace_c1_enter(ctrace_site_, ctrace_sp_)))
#define CTRACE_LATE_OFF_(var, late, label, group, name) CTRACE_GUARD_(var, 0)

/* The type of a value, a constant: 2 for floats, 1 for unsigned integers, else 0. */
#define CTRACE_TYPE_(value)                                                                            \
    (__builtin_classify_type((value) + 0) == 8 ? 2 : (__typeof__((value) + 0))-1 > 0 ? 1 : 0)
/* A name, and behind its zero byte the list of the one value. */
#define CTRACE_LISTED_(name, list, value)                                                              \
    CTRACE_TYPE_(value) == 2 ? name "\0" list ":f64"                                                   \
                             : CTRACE_TYPE_(value) == 1 ? name "\0" list ":u64" : name "\0" list ":i64"
#define CTRACE_BITS_(value)                                                                            \
    __extension__({                                                                                    \
        __typeof__((value) + 0) ctrace_value_ = (value);                                               \
        CTRACE_TYPE_(ctrace_value_) == 2 ? ctrace_float_((double)ctrace_value_) : (uint64_t)ctrace_value_; \
    })
CTRACE_INLINE_ uint64_t ctrace_float_(double value) {
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The group's field of a scope without a group, and of one that has a group. */
#define CTRACE_NO_GROUP_ "%c[grp]"
#define CTRACE_GROUP_ "%c[grp] - ."
/* `more` is 0 or CTRACE_COLOUR_FLAG_: the group is then the colour, and the group's field CTRACE_BEFORE_COLOUR_. */
#define CTRACE_VALUED_(more, var, name, list, group, field, value)                                     \
    CTRACE_GUARD_(var, CTRACE_WITH_VALUE_(8 | (more), name, list, group, field, value))
#define CTRACE_NO_VALUED_(more, var, name, list, group, field, value)                                  \
    CTRACE_GUARD_(var, 0 * sizeof((value) + 0) + 0 * sizeof(group))
#define CTRACE_WITH_VALUE_(flags, name, list, group, field, value)                                     \
    CTRACE_ENTER_BY_(flags, (CTRACE_LISTED_(name, list, value)), group, field,                         \
                     ctrace_c1_enter_valued(ctrace_site_, ctrace_sp_, CTRACE_BITS_(value)))
#define CTRACE_PLOT_(more, name, list, group, field, value)                                            \
    ((void)CTRACE_ENTER_BY_(12 | (more) | 2 << 8, (CTRACE_LISTED_(name, list, value)), group, field,            \
                            (ctrace_c1_plot(ctrace_site_, ctrace_sp_, CTRACE_BITS_(value),             \
                                            CTRACE_TYPE_(value) == 2), 0)))
#define CTRACE_FRAME_(more, name, group, field)                                                        \
    ((void)CTRACE_ENTER_(4 | (more) | CTRACE_FRAME_SHAPE_ << 8, name, group, field))
/* Parentheses keep a compiler from further errors where the format is no literal. */
#define CTRACE_MESSAGE_(more, level, group, field, ...)                                                \
    (CTRACE_NEEDS_LITERAL_(CTRACE_ONE_(__VA_ARGS__)),                                                  \
     (void)CTRACE_ENTER_BY_(12 | (more) | 1 << 8 | (level) << 16, (CTRACE_ONE_(__VA_ARGS__) "\0message:str"), \
                            group, field, (CTRACE_IS_TEXT_(CTRACE_ONE_(__VA_ARGS__))                   \
                                        ? ctrace_c1_text(ctrace_site_, ctrace_sp_, CTRACE_ONE_(__VA_ARGS__), \
                                                         sizeof(CTRACE_ONE_(__VA_ARGS__)) - 1)         \
                                        : ctrace_c1_message(ctrace_site_, ctrace_sp_, __VA_ARGS__),    \
                                    0)))
/* Says what is wrong with a format, before the compiler tells what it makes of that. */
#if !defined(__cplusplus)
#define CTRACE_NEEDS_LITERAL_(format)                                                                  \
    ((void)__extension__({ _Static_assert(__builtin_constant_p(format), CTRACE_NO_LITERAL_); 0; }))
#else
#define CTRACE_NEEDS_LITERAL_(format)                                                                  \
    ((void)__extension__({ static_assert(__builtin_constant_p(format), CTRACE_NO_LITERAL_); 0; }))
#endif
#define CTRACE_NO_LITERAL_                                                                             \
    "the format of a CTRACE_MESSAGE must be a string literal: write CTRACE_MESSAGE(\"%s\", text)"
/* Whether a format is its text. The compiler knows that if it optimises. */
#define CTRACE_IS_TEXT_(format) (sizeof(format) <= CTRACE_LONGEST_TEXT_ && !__builtin_strchr(format, '%'))

#else /* !CTRACE_ENABLED */

#define CTRACE_SCOPE_(var, flags, name) enum { var }
#define CTRACE_END(var) ((void)var)
#define CTRACE_IN_ON_(var, flags, name, group) CTRACE_SCOPE_(var, flags, name)
#define CTRACE_IN_OFF_(var, flags, name, group) CTRACE_SCOPE_(var, flags, name)
#define CTRACE_LATE_ON_(var, late, label, group, name) CTRACE_SCOPE_(var, 0, name)
#define CTRACE_LATE_OFF_(var, late, label, group, name) CTRACE_SCOPE_(var, 0, name)
#define CTRACE_COLOURED_ CTRACE_COLOURED_OFF_
#define CTRACE_COLOURED_OFF_(var, flags, name, group, colour) enum { var = 0 * CTRACE_RGB_(colour) }
#define CTRACE_VALUED_ CTRACE_NO_VALUED_
#define CTRACE_NO_VALUED_(more, var, name, list, group, field, value)                                  \
    enum { var = 0 * sizeof((value) + 0) + 0 * sizeof(group) }
#define CTRACE_PLOT_ CTRACE_NO_PLOT_
#define CTRACE_FRAME_ CTRACE_NO_FRAME_
#define CTRACE_MESSAGE_ CTRACE_NO_MESSAGE_
#define ctrace_name_thread_(name) ((void)sizeof(*(name)))

#endif /* CTRACE_ENABLED */

/* Points that are compiled out. Arguments are checked and count as used, but are not computed. */
#define CTRACE_NO_PLOT_(more, name, list, group, field, value) ((void)(sizeof((value) + 0) + sizeof(group)))
#define CTRACE_NO_FRAME_(more, name, group, field) ((void)sizeof(group))
#define CTRACE_NO_MESSAGE_(more, level, group, field, ...)                                             \
    ((void)(sizeof(ctrace_no_message_(__VA_ARGS__)) + sizeof(group)))
#ifdef __GNUC__
__attribute__((__format__(__printf__, 1, 2)))
#endif
static inline char ctrace_no_message_(const char *format, ...) {
    (void)format;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------
 * The macros
 * ------------------------------------------------------------------------------------------------- */

#define CTRACE_UNIQUE_ CTRACE_JOIN_(ctrace_scope_, __COUNTER__)

/* CTRACE_IN_(CTRACE_DISABLE_group) is CTRACE_IN_OFF_ where that is defined (as nothing or 1), else
 * CTRACE_IN_ON_. CTRACE_LATE_IN_ is the same for CTRACE_LATE_OFF_ and CTRACE_LATE_ON_. */
#define CTRACE_IN_(disabled) CTRACE_IN2_(disabled)
#define CTRACE_IN2_(value) CTRACE_SECOND_(CTRACE_IS_##value CTRACE_IN_OFF_, CTRACE_IN_ON_, 0)
#define CTRACE_LATE_IN_(disabled) CTRACE_LATE_IN2_(disabled)
#define CTRACE_LATE_IN2_(value) CTRACE_SECOND_(CTRACE_IS_##value CTRACE_LATE_OFF_, CTRACE_LATE_ON_, 0)
/* CTRACE_CHOOSE_(CTRACE_DISABLE_group, on, off) chooses likewise between two other macros. */
#define CTRACE_CHOOSE_(disabled, on, off) CTRACE_CHOOSE2_(disabled, on, off)
#define CTRACE_CHOOSE2_(value, on, off) CTRACE_SECOND_(CTRACE_IS_##value off, on, 0)
#define CTRACE_IS_ ~,
#define CTRACE_IS_1 ~,
#define CTRACE_SECOND_(...) CTRACE_SECOND2_(__VA_ARGS__)
#define CTRACE_SECOND2_(a, b, ...) b
#define CTRACE_ONE_(...) CTRACE_ONE2_(__VA_ARGS__, 0)
#define CTRACE_ONE2_(a, ...) a

/* A colour, which must have 24 bits. */
#define CTRACE_RGB_(colour) ((colour) + 0 * (int)sizeof(char[(colour) & ~0xffffff ? -1 : 1]))
#define CTRACE_COLOURED_IN_(disabled) CTRACE_CHOOSE_(disabled, CTRACE_COLOURED_, CTRACE_COLOURED_OFF_)

/* Lets CTRACE_FUNCTION be written with and without parentheses. */
static inline void ctrace_nothing_(void) {}
#define CTRACE_PARENTHESES_ (void)ctrace_nothing_

#define CTRACE_SCOPE(name) CTRACE_SCOPE_(CTRACE_UNIQUE_, 0, name)
#define CTRACE_SCOPE_IN(group, name) CTRACE_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, 0, name, #group)
#define CTRACE_FUNCTION CTRACE_SCOPE_(CTRACE_UNIQUE_, 1, __func__); CTRACE_PARENTHESES_
#define CTRACE_FUNCTION_IN(group) CTRACE_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, 1, __func__, #group)
#define CTRACE_BEGIN(var, name) CTRACE_SCOPE_(var, 0, name)
#define CTRACE_BEGIN_IN(group, var, name) CTRACE_IN_(CTRACE_DISABLE_##group)(var, 0, name, #group)

#define CTRACE_SCOPE_COLOUR(name, colour) CTRACE_COLOURED_(CTRACE_UNIQUE_, 0, name, "", colour)
#define CTRACE_FUNCTION_COLOUR(colour) CTRACE_COLOURED_(CTRACE_UNIQUE_, 1, __func__, "", colour)
#define CTRACE_BEGIN_COLOUR(var, name, colour) CTRACE_COLOURED_(var, 0, name, "", colour)
#define CTRACE_SCOPE_COLOUR_IN(group, name, colour)                                                    \
    CTRACE_COLOURED_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, 0, name, #group, colour)
#define CTRACE_FUNCTION_COLOUR_IN(group, colour)                                                       \
    CTRACE_COLOURED_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, 1, __func__, #group, colour)
#define CTRACE_BEGIN_COLOUR_IN(group, var, name, colour)                                               \
    CTRACE_COLOURED_IN_(CTRACE_DISABLE_##group)(var, 0, name, #group, colour)
#define CTRACE_SCOPE_COLOR CTRACE_SCOPE_COLOUR
#define CTRACE_FUNCTION_COLOR CTRACE_FUNCTION_COLOUR
#define CTRACE_BEGIN_COLOR CTRACE_BEGIN_COLOUR
#define CTRACE_SCOPE_COLOR_IN CTRACE_SCOPE_COLOUR_IN
#define CTRACE_FUNCTION_COLOR_IN CTRACE_FUNCTION_COLOUR_IN
#define CTRACE_BEGIN_COLOR_IN CTRACE_BEGIN_COLOUR_IN

#define CTRACE_FRAME_SCOPE(name) CTRACE_FRAME_BEGIN(CTRACE_UNIQUE_, name)
/* A group that is also a macro, as `linux` is one, must not be expanded: so this passes it to no other macro. */
#define CTRACE_FRAME_SCOPE_IN(group, name)                                                             \
    CTRACE_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, CTRACE_FRAME_SHAPE_ << 8, name, #group)
#define CTRACE_FRAME_BEGIN(var, name) CTRACE_SCOPE_(var, CTRACE_FRAME_SHAPE_ << 8, name)
#define CTRACE_FRAME_BEGIN_IN(group, var, name)                                                        \
    CTRACE_IN_(CTRACE_DISABLE_##group)(var, CTRACE_FRAME_SHAPE_ << 8, name, #group)

#define CTRACE_SCOPE_VALUE(name, value_name, value)                                                    \
    CTRACE_VALUED_(0, CTRACE_UNIQUE_, name, value_name, 0, CTRACE_NO_GROUP_, value)
#define CTRACE_SCOPE_VALUE_IN(group, name, value_name, value)                                          \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_VALUED_, CTRACE_NO_VALUED_)                          \
    (0, CTRACE_UNIQUE_, name, value_name, #group, CTRACE_GROUP_, value)
#define CTRACE_SCOPE_VALUE_COLOUR(name, value_name, value, colour)                                     \
    CTRACE_VALUED_(CTRACE_COLOUR_FLAG_, CTRACE_UNIQUE_, name, value_name, CTRACE_RGB_(colour),         \
                   CTRACE_BEFORE_COLOUR_(""), value)
#define CTRACE_SCOPE_VALUE_COLOUR_IN(group, name, value_name, value, colour)                           \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_VALUED_, CTRACE_NO_VALUED_)                          \
    (CTRACE_COLOUR_FLAG_, CTRACE_UNIQUE_, name, value_name, CTRACE_RGB_(colour),                       \
     CTRACE_BEFORE_COLOUR_(#group), value)
#define CTRACE_SCOPE_VALUE_COLOR CTRACE_SCOPE_VALUE_COLOUR
#define CTRACE_SCOPE_VALUE_COLOR_IN CTRACE_SCOPE_VALUE_COLOUR_IN

/* Levels of messages. */
enum { CTRACE_TRACE = 1, CTRACE_DEBUG, CTRACE_INFO, CTRACE_WARN, CTRACE_ERROR };

#define CTRACE_MESSAGE(...) CTRACE_MESSAGE_(0, 0, 0, CTRACE_NO_GROUP_, __VA_ARGS__)
#define CTRACE_MESSAGE_LEVEL(level, ...) CTRACE_MESSAGE_(0, level, 0, CTRACE_NO_GROUP_, __VA_ARGS__)
#define CTRACE_MESSAGE_IN(group, level, ...)                                                           \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_MESSAGE_, CTRACE_NO_MESSAGE_)                        \
    (0, level, #group, CTRACE_GROUP_, __VA_ARGS__)
#define CTRACE_MESSAGE_COLOUR(level, colour, ...)                                                      \
    CTRACE_MESSAGE_(CTRACE_COLOUR_FLAG_, level, CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(""), __VA_ARGS__)
#define CTRACE_MESSAGE_COLOUR_IN(group, level, colour, ...)                                            \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_MESSAGE_, CTRACE_NO_MESSAGE_)                        \
    (CTRACE_COLOUR_FLAG_, level, CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(#group), __VA_ARGS__)
#define CTRACE_PLOT(name, value) CTRACE_PLOT_(0, name, "value", 0, CTRACE_NO_GROUP_, value)
#define CTRACE_PLOT_UNIT(name, unit, value)                                                            \
    CTRACE_PLOT_(0, name, "value[" unit "]", 0, CTRACE_NO_GROUP_, value)
#define CTRACE_PLOT_IN(group, name, value)                                                             \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_PLOT_, CTRACE_NO_PLOT_)                              \
    (0, name, "value", #group, CTRACE_GROUP_, value)
#define CTRACE_PLOT_COLOUR(name, value, colour)                                                        \
    CTRACE_PLOT_(CTRACE_COLOUR_FLAG_, name, "value", CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(""), value)
#define CTRACE_PLOT_UNIT_COLOUR(name, unit, value, colour)                                             \
    CTRACE_PLOT_(CTRACE_COLOUR_FLAG_, name, "value[" unit "]", CTRACE_RGB_(colour),                    \
                 CTRACE_BEFORE_COLOUR_(""), value)
#define CTRACE_PLOT_COLOUR_IN(group, name, value, colour)                                              \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_PLOT_, CTRACE_NO_PLOT_)                              \
    (CTRACE_COLOUR_FLAG_, name, "value", CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(#group), value)
#define CTRACE_FRAME(name) CTRACE_FRAME_(0, name, 0, CTRACE_NO_GROUP_)
#define CTRACE_FRAME_IN(group, name)                                                                   \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_FRAME_, CTRACE_NO_FRAME_)(0, name, #group, CTRACE_GROUP_)
#define CTRACE_FRAME_COLOUR(name, colour)                                                              \
    CTRACE_FRAME_(CTRACE_COLOUR_FLAG_, name, CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(""))
#define CTRACE_FRAME_COLOUR_IN(group, name, colour)                                                    \
    CTRACE_CHOOSE_(CTRACE_DISABLE_##group, CTRACE_FRAME_, CTRACE_NO_FRAME_)                            \
    (CTRACE_COLOUR_FLAG_, name, CTRACE_RGB_(colour), CTRACE_BEFORE_COLOUR_(#group))
#define CTRACE_THREAD_NAME(name) ctrace_name_thread_(name)
#define CTRACE_MESSAGE_COLOR CTRACE_MESSAGE_COLOUR
#define CTRACE_MESSAGE_COLOR_IN CTRACE_MESSAGE_COLOUR_IN
#define CTRACE_PLOT_COLOR CTRACE_PLOT_COLOUR
#define CTRACE_PLOT_UNIT_COLOR CTRACE_PLOT_UNIT_COLOUR
#define CTRACE_PLOT_COLOR_IN CTRACE_PLOT_COLOUR_IN
#define CTRACE_FRAME_COLOR CTRACE_FRAME_COLOUR
#define CTRACE_FRAME_COLOR_IN CTRACE_FRAME_COLOUR_IN

/* ---------------------------------------------------------------------------------------------------
 * Locks
 * ------------------------------------------------------------------------------------------------- */

#if defined(__cplusplus) && (__cplusplus >= 201103L || (defined(_MSVC_LANG) && _MSVC_LANG >= 201103L))

#define CTRACE_LOCK_OFF_(flags, name, lock) ((void)(lock), (unsigned long long)0)
#define CTRACE_LOCK_NAME_OFF_(lock, name) ((void)(lock), (void)(name), (unsigned long long)0)
#if CTRACE_ENABLED
#define CTRACE_LOCK_ON_(flags, name, lock) CTRACE_WITH_VALUE_(flags, name, "lock", "locks", CTRACE_GROUP_, lock)
#define CTRACE_LOCK_NAME_ON_(lock, name)                                                               \
    CTRACE_ENTER_BY_(12, "lock name\0lock:u64,name:str", "locks", CTRACE_GROUP_,                       \
                     ctrace_c1_told(ctrace_site_, ctrace_sp_, lock, name))
#else
#define CTRACE_LOCK_ON_ CTRACE_LOCK_OFF_
#define CTRACE_LOCK_NAME_ON_ CTRACE_LOCK_NAME_OFF_
#endif
#ifdef __GNUC__
#define CTRACE_LOCK_INLINE_ inline __attribute__((__always_inline__))
#define CTRACE_LOCK_COLD_ __attribute__((__cold__, __noinline__))
#else
#define CTRACE_LOCK_INLINE_ inline
#define CTRACE_LOCK_COLD_
#endif

/* Files that are compiled with and without these markers have functions of their own. */
#if CTRACE_ENABLED
#define CTRACE_LOCK_TYPES_ CTRACE_CHOOSE_(CTRACE_DISABLE_locks, locks_on, locks_off)
#else
#define CTRACE_LOCK_TYPES_ locks_none
#endif

namespace ctrace_c1 {
inline namespace CTRACE_LOCK_TYPES_ {
/* The events of locks, each in one place, so that ctrace sees each once. They return 0 if they are off. */
#define CTRACE_LOCK_EVENT_(function, flags, name)                                                      \
    CTRACE_LOCK_INLINE_ unsigned long long function(unsigned long long lock) noexcept {                                    \
        return CTRACE_CHOOSE_(CTRACE_DISABLE_locks, CTRACE_LOCK_ON_, CTRACE_LOCK_OFF_)(flags, name, lock); \
    }
CTRACE_LOCK_EVENT_(mutex_waits, 8, "mutex wait")
CTRACE_LOCK_EVENT_(mutex_locked, 12, "mutex lock")
CTRACE_LOCK_EVENT_(recursive_mutex_locked, 12, "recursive mutex lock")
CTRACE_LOCK_EVENT_(mutex_unlocked, 12, "mutex unlock")
CTRACE_LOCK_EVENT_(mutex_refused, 12, "mutex refused")
CTRACE_LOCK_EVENT_(rwlock_waits_to_read, 8, "rwlock read wait")
CTRACE_LOCK_EVENT_(rwlock_read, 12, "rwlock read lock")
CTRACE_LOCK_EVENT_(rwlock_waits_to_write, 8, "rwlock write wait")
CTRACE_LOCK_EVENT_(rwlock_written, 12, "rwlock write lock")
CTRACE_LOCK_EVENT_(rwlock_unlocked, 12, "rwlock unlock")
CTRACE_LOCK_EVENT_(rwlock_refused, 12, "rwlock refused")
#undef CTRACE_LOCK_EVENT_

CTRACE_LOCK_INLINE_ void lock_named(unsigned long long lock, const char *name) noexcept {
    if (*name)
        (void)CTRACE_CHOOSE_(CTRACE_DISABLE_locks, CTRACE_LOCK_NAME_ON_, CTRACE_LOCK_NAME_OFF_)(lock, name);
}

#if CTRACE_ENABLED
typedef guard lock_wait;
/* ctrace is told a lock's name now and then, as an earlier time may be lost. Threads that share a lock may
 * count one acquisition for two. */
CTRACE_LOCK_COLD_ inline void lock_counted(unsigned long long lock, const char *name, unsigned int *since) noexcept {
    unsigned int n = __atomic_load_n(since, __ATOMIC_RELAXED);
    __atomic_store_n(since, (n + 1) % 64, __ATOMIC_RELAXED);
    if (n == 0) lock_named(lock, name);
}
/* Notes an acquisition without a wait. Whoever listens next does not know the name. */
CTRACE_LOCK_INLINE_ void lock_acquired(unsigned long long on, unsigned long long lock, const char *name, unsigned int *since) noexcept {
    if (CTRACE_UNLIKELY_(on))
        lock_counted(lock, name, since);
    else if (CTRACE_UNLIKELY_(__atomic_load_n(since, __ATOMIC_RELAXED)))
        __atomic_store_n(since, 0, __ATOMIC_RELAXED);
}
#else
struct lock_wait {
    explicit lock_wait(unsigned long long) noexcept {}
    void end() noexcept {}
};
CTRACE_LOCK_INLINE_ void lock_acquired(unsigned long long, unsigned long long, const char *, unsigned int *) noexcept {}
#endif

/* Whether M is a shared mutex. */
template <class M> struct is_shared {
    template <class N> static N &one();
    template <class N> static char test(decltype(one<N>().lock_shared()) *);
    template <class N> static long test(...);
    enum { value = sizeof(test<M>(0)) == sizeof(char) };
};
template <class M> CTRACE_LOCK_INLINE_ bool nests_by_name() noexcept {
#if CTRACE_ENABLED
    return __builtin_strstr(__PRETTY_FUNCTION__, "ecursive") != nullptr;
#else
    return false;
#endif
}
} // namespace CTRACE_LOCK_TYPES_
} // namespace ctrace_c1

namespace ctrace {
inline namespace CTRACE_LOCK_TYPES_ {
/* Whether a thread can take an M that it holds. Specialize it for types whose name does not say so, or is
 * misleading. */
template <class M> struct is_recursive {
    static bool value() noexcept { return ctrace_c1::nests_by_name<M>(); }
};

/* A mutex whose waits and holds ctrace can follow. It first tries to lock, so that it is known for sure which
 * acquisitions had to wait. If M's lock throws, the wait counts as one that got the lock. */
template <class M> class lockable {
    const char *name_;
    unsigned int since_; /* acquisitions since ctrace was told the name */
    M mutex_;
    enum { shared = ctrace_c1::is_shared<M>::value };

    unsigned long long here() const noexcept { return (unsigned long long)this; }

    CTRACE_LOCK_COLD_ void wait() {
        const unsigned long long at = here();
        ctrace_c1::lock_wait waits(shared ? ctrace_c1::rwlock_waits_to_write(at) : ctrace_c1::mutex_waits(at));
        mutex_.lock();
        waits.end();
        ctrace_c1::lock_named(at, name_);
    }
    CTRACE_LOCK_COLD_ void wait_shared() {
        const unsigned long long at = here();
        ctrace_c1::lock_wait waits(ctrace_c1::rwlock_waits_to_read(at));
        mutex_.lock_shared();
        waits.end();
        ctrace_c1::lock_named(at, name_);
    }
    bool tried() {
        if (!mutex_.try_lock()) return false;
        const unsigned long long at = here();
        const unsigned long long on = shared                    ? ctrace_c1::rwlock_written(at)
                                      : is_recursive<M>::value() ? ctrace_c1::recursive_mutex_locked(at)
                                                               : ctrace_c1::mutex_locked(at);
        ctrace_c1::lock_acquired(on, at, name_, &since_);
        return true;
    }
    bool tried_shared() {
        if (!mutex_.try_lock_shared()) return false;
        const unsigned long long at = here();
        ctrace_c1::lock_acquired(ctrace_c1::rwlock_read(at), at, name_, &since_);
        return true;
    }

  public:
    constexpr lockable() : name_(""), since_(0), mutex_() {}
    /* The name is kept, not copied. */
    explicit constexpr lockable(const char *name) : name_(name ? name : ""), since_(0), mutex_() {}
    lockable(const lockable &) = delete;
    lockable &operator=(const lockable &) = delete;

    const char *name() const noexcept { return name_; }

    void lock() {
        if (!tried()) wait();
    }
    bool try_lock() {
        if (tried()) return true;
        (void)(shared ? ctrace_c1::rwlock_refused(here()) : ctrace_c1::mutex_refused(here()));
        return false;
    }
    /* The release is written before it happens, so that it is before the next acquisition. */
    void unlock() {
        (void)(shared ? ctrace_c1::rwlock_unlocked(here()) : ctrace_c1::mutex_unlocked(here()));
        mutex_.unlock();
    }

    void lock_shared() {
        if (!tried_shared()) wait_shared();
    }
    bool try_lock_shared() {
        if (tried_shared()) return true;
        (void)ctrace_c1::rwlock_refused(here());
        return false;
    }
    void unlock_shared() {
        (void)ctrace_c1::rwlock_unlocked(here());
        mutex_.unlock_shared();
    }
};
} // namespace CTRACE_LOCK_TYPES_
} // namespace ctrace
#endif /* C++11 */

#endif /* CTRACE_H */
