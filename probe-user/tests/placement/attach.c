// Puts probes on a program with nothing but system calls, so that placement is tested alone.
//
//   attach FILE_WITH_SITES run COMMAND...   probes first, then exec; exits as the command does
//   attach FILE_WITH_SITES hold COMMAND...  probes on the running command, then kills it
//
// Each line of the file: kind (e: entry-type, r: return), offset, cookie, path. The cookie is twice
// a function's number, and one more where the site is a way out of it. Exits with 99 and a
// message when the kernel refuses a site, 98 when it knows no multi links. The numbers
// of hits, of calls, and of calls whose end was seen with the stack pointer of their start go to
// the file FILE_WITH_SITES.hits.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long bpf(int command, void *attributes, unsigned size) {
    return syscall(SYS_bpf, command, attributes, size);
}

static int counters, calls;

static int map(int type, int key, int value, int entries) {
    unsigned char a[128] = {0};
    *(uint32_t *)(a + 0) = type;
    *(uint32_t *)(a + 4) = key;
    *(uint32_t *)(a + 8) = value;
    *(uint32_t *)(a + 12) = entries;
    return bpf(BPF_MAP_CREATE, a, sizeof a);
}

#define LOAD_MAP(fd) {.code = 0x18, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = fd}, {0}
#define ADDRESS(reg, offset) {.code = 0xbf, .dst_reg = reg, .src_reg = 10}, {.code = 0x07, .dst_reg = reg, .imm = offset}
#define CALL(helper) {.code = 0x85, .imm = helper}
// counters[slot in r8] += 1, nine instructions
#define COUNT \
    {.code = 0x63, .dst_reg = 10, .src_reg = 8, .off = -36}, LOAD_MAP(counters), ADDRESS(2, -36), \
    CALL(BPF_FUNC_map_lookup_elem), {.code = 0x15, .off = 2}, {.code = 0xb7, .dst_reg = 1, .imm = 1}, \
    {.code = 0xdb, .src_reg = 1}

static int load(void) {
    counters = map(BPF_MAP_TYPE_ARRAY, 4, 8, 3);
    calls = map(BPF_MAP_TYPE_HASH, 24, 8, 1 << 18);
    struct bpf_insn code[] = {
        {.code = 0xbf, .dst_reg = 6, .src_reg = 1},
        {.code = 0xb7, .dst_reg = 8},
        COUNT,
        {.code = 0xbf, .dst_reg = 1, .src_reg = 6},
        CALL(174), // bpf_get_attach_cookie
        {.code = 0xbf, .dst_reg = 7},
        CALL(BPF_FUNC_get_current_pid_tgid),
        {.code = 0x7b, .dst_reg = 10, .off = -24},
        {.code = 0x79, .dst_reg = 1, .src_reg = 6, .off = 152}, // the stack pointer
        {.code = 0x7b, .dst_reg = 10, .src_reg = 1, .off = -16},
        {.code = 0xbf, .dst_reg = 1, .src_reg = 7},
        {.code = 0x77, .dst_reg = 1, .imm = 1},
        {.code = 0x7b, .dst_reg = 10, .src_reg = 1, .off = -8},
        {.code = 0x57, .dst_reg = 7, .imm = 1},
        {.code = 0xb7, .dst_reg = 8, .imm = 1},
        {.code = 0x55, .dst_reg = 7, .off = 10},
        // A call begins, unless it is a turn of a loop.
        {.code = 0x7a, .dst_reg = 10, .off = -32, .imm = 1},
        LOAD_MAP(calls), ADDRESS(2, -24), ADDRESS(3, -32),
        {.code = 0xb7, .dst_reg = 4, .imm = BPF_NOEXIST},
        CALL(BPF_FUNC_map_update_elem),
        {.code = 0x05, .off = 6},
        // A call ends, if it is its own stack pointer.
        {.code = 0xb7, .dst_reg = 8, .imm = 2},
        LOAD_MAP(calls), ADDRESS(2, -24),
        CALL(BPF_FUNC_map_delete_elem),
        {.code = 0x55, .off = 10},
        COUNT,
        {.code = 0xb7},
        {.code = 0x95},
    };
    static char log[65536];
    unsigned char a[128] = {0};
    *(uint32_t *)(a + 0) = BPF_PROG_TYPE_KPROBE;
    *(uint32_t *)(a + 4) = sizeof code / sizeof *code;
    *(uint64_t *)(a + 8) = (uintptr_t)code;
    *(uint64_t *)(a + 16) = (uintptr_t) "GPL";
    *(uint32_t *)(a + 24) = 1;
    *(uint32_t *)(a + 28) = sizeof log;
    *(uint64_t *)(a + 32) = (uintptr_t)log;
    *(uint32_t *)(a + 68) = 48;
    int program = bpf(BPF_PROG_LOAD, a, sizeof a);
    if (program < 0) fputs(log, stderr);
    return program;
}

static void report_hits(const char *sites) {
    char path[4096];
    snprintf(path, sizeof path, "%s.hits", sites);
    FILE *file = fopen(path, "w");
    for (uint32_t key = 0; key < 3; key++) {
        unsigned char a[64] = {0};
        uint64_t hits = 0;
        *(uint32_t *)(a + 0) = counters;
        *(uint64_t *)(a + 8) = (uintptr_t)&key;
        *(uint64_t *)(a + 16) = (uintptr_t)&hits;
        bpf(BPF_MAP_LOOKUP_ELEM, a, sizeof a);
        fprintf(file, "%llu\n", (unsigned long long)hits);
    }
    fclose(file);
}

static int attach(int program, const char *path, uint64_t *offsets, uint64_t *cookies, unsigned count, int returns, int pid) {
    unsigned char a[64] = {0};
    *(uint32_t *)(a + 0) = program;
    *(uint32_t *)(a + 8) = 48;
    *(uint64_t *)(a + 16) = (uintptr_t)path;
    *(uint64_t *)(a + 24) = (uintptr_t)offsets;
    *(uint64_t *)(a + 40) = (uintptr_t)cookies;
    *(uint32_t *)(a + 48) = count;
    *(uint32_t *)(a + 52) = returns;
    *(uint32_t *)(a + 56) = pid;
    return bpf(BPF_LINK_CREATE, a, sizeof a);
}

static uint64_t offsets[1 << 20], cookies[1 << 20];

// One link for each run of lines with the same path and kind.
static void attach_all(const char *sites, int pid) {
    int program = load();
    if (program < 0) {
        fprintf(stderr, "no multi links: %s\n", strerror(errno));
        exit(98);
    }
    FILE *file = fopen(sites, "r");
    char kind, path[4096], last_kind = 0, last[4096] = "";
    unsigned long long offset, cookie;
    unsigned count = 0;
    for (;;) {
        int read = fscanf(file, " %c %llu %llu %4095s", &kind, &offset, &cookie, path);
        if (count && (read != 4 || kind != last_kind || strcmp(path, last))) {
            if (attach(program, last, offsets, cookies, count, last_kind == 'r', pid) < 0) {
                int why = errno;
                fprintf(stderr, "%u sites of %s (%c): %s\n", count, last, last_kind, strerror(why));
                for (unsigned i = 0; i < count && i < 20000; i++) {
                    int one = attach(program, last, offsets + i, cookies + i, 1, last_kind == 'r', pid);
                    if (one < 0) fprintf(stderr, "refused: %#llx\n", (unsigned long long)offsets[i]);
                    if (one < 0 || i % 200 == 199) continue;
                    close(one);
                }
                kill(pid, SIGKILL);
                exit(99);
            }
            count = 0;
        }
        if (read != 4) break;
        cookies[count] = cookie;
        offsets[count++] = offset;
        last_kind = kind;
        strcpy(last, path);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    if (argc < 4) return 97;
    int hold = !strcmp(argv[2], "hold"), ready[2];
    if (pipe2(ready, O_CLOEXEC)) return 97;
    int pid = fork();
    if (pid == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[1]);
        if (!hold && read(ready[0], &byte, 1) != 1) _exit(97);
        alarm(120); // a target that a probe makes hang ends
        execvp(argv[3], argv + 3);
        _exit(97);
    }
    close(ready[0]);
    if (hold) {
        usleep(300000);
        attach_all(argv[1], pid);
        if (waitpid(pid, NULL, WNOHANG)) {
            fprintf(stderr, "the command did not stay\n");
            return 96;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return 0;
    }
    attach_all(argv[1], pid);
    if (write(ready[1], "g", 1) != 1) return 97;
    close(ready[1]);
    int status;
    waitpid(pid, &status, 0);
    report_hits(argv[1]);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "killed by signal %d\n", WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
