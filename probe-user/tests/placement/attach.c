// Puts probes on a program with nothing but system calls, so that placement is tested alone.
//
//   attach FILE_WITH_SITES run COMMAND...   probes first, then exec; exits as the command does
//   attach FILE_WITH_SITES hold COMMAND...  probes on the running command, then kills it
//
// Each line of the file: kind (e: entry-type, r: return), offset, path. Exits with 99 and a
// message when the kernel refuses a site, 98 when it knows no multi links. The number of hits goes
// to the file FILE_WITH_SITES.hits.
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

static int counter;

// A program that counts its runs in `counter`.
static int load(void) {
    unsigned char map[128] = {0};
    *(uint32_t *)(map + 0) = BPF_MAP_TYPE_ARRAY;
    *(uint32_t *)(map + 4) = 4;
    *(uint32_t *)(map + 8) = 8;
    *(uint32_t *)(map + 12) = 1;
    counter = bpf(BPF_MAP_CREATE, map, sizeof map);
    struct bpf_insn code[] = {
        {.code = 0x62, .dst_reg = 10, .off = -4},
        {.code = 0x18, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = counter},
        {0},
        {.code = 0xbf, .dst_reg = 2, .src_reg = 10},
        {.code = 0x07, .dst_reg = 2, .imm = -4},
        {.code = 0x85, .imm = BPF_FUNC_map_lookup_elem},
        {.code = 0x15, .off = 2},
        {.code = 0xb7, .dst_reg = 1, .imm = 1},
        {.code = 0xdb, .src_reg = 1},
        {.code = 0xb7},
        {.code = 0x95},
    };
    unsigned char a[128] = {0};
    *(uint32_t *)(a + 0) = BPF_PROG_TYPE_KPROBE;
    *(uint32_t *)(a + 4) = sizeof code / sizeof *code;
    *(uint64_t *)(a + 8) = (uintptr_t)code;
    *(uint64_t *)(a + 16) = (uintptr_t) "GPL";
    *(uint32_t *)(a + 68) = 48;
    return bpf(BPF_PROG_LOAD, a, sizeof a);
}

static void report_hits(const char *sites) {
    unsigned char a[64] = {0};
    uint32_t key = 0;
    uint64_t hits = 0;
    char path[4096];
    *(uint32_t *)(a + 0) = counter;
    *(uint64_t *)(a + 8) = (uintptr_t)&key;
    *(uint64_t *)(a + 16) = (uintptr_t)&hits;
    bpf(BPF_MAP_LOOKUP_ELEM, a, sizeof a);
    snprintf(path, sizeof path, "%s.hits", sites);
    FILE *file = fopen(path, "w");
    fprintf(file, "%llu", (unsigned long long)hits);
    fclose(file);
}

static int attach(int program, const char *path, uint64_t *offsets, unsigned count, int returns, int pid) {
    unsigned char a[64] = {0};
    *(uint32_t *)(a + 0) = program;
    *(uint32_t *)(a + 8) = 48;
    *(uint64_t *)(a + 16) = (uintptr_t)path;
    *(uint64_t *)(a + 24) = (uintptr_t)offsets;
    *(uint32_t *)(a + 48) = count;
    *(uint32_t *)(a + 52) = returns;
    *(uint32_t *)(a + 56) = pid;
    return bpf(BPF_LINK_CREATE, a, sizeof a);
}

static uint64_t offsets[1 << 20];

// One link for each run of lines with the same path and kind.
static void attach_all(const char *sites, int pid) {
    int program = load();
    if (program < 0) {
        fprintf(stderr, "no multi links: %s\n", strerror(errno));
        exit(98);
    }
    FILE *file = fopen(sites, "r");
    char kind, path[4096], last_kind = 0, last[4096] = "";
    unsigned long long offset;
    unsigned count = 0;
    for (;;) {
        int read = fscanf(file, " %c %llu %4095s", &kind, &offset, path);
        if (count && (read != 3 || kind != last_kind || strcmp(path, last))) {
            if (attach(program, last, offsets, count, last_kind == 'r', pid) < 0) {
                int why = errno;
                fprintf(stderr, "%u sites of %s (%c): %s\n", count, last, last_kind, strerror(why));
                for (unsigned i = 0; i < count && i < 20000; i++) {
                    int one = attach(program, last, offsets + i, 1, last_kind == 'r', pid);
                    if (one < 0) fprintf(stderr, "refused: %#llx\n", (unsigned long long)offsets[i]);
                    if (one < 0 || i % 200 == 199) continue;
                    close(one);
                }
                kill(pid, SIGKILL);
                exit(99);
            }
            count = 0;
        }
        if (read != 3) break;
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
