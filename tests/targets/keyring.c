// Tests access to keys by a session keyring. keyring join COMMAND...: executes the command in a new
// session keyring with a key in it. keyring look: prints whether that key is there.
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SESSION = -3, JOIN_SESSION_KEYRING = 1, READ = 11 };

__attribute__((noinline)) long look(void) { return syscall(SYS_request_key, "user", "ctrace-secret", 0, 0); }

int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "join")) {
        if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, "ctrace-session") < 0 ||
            syscall(SYS_add_key, "user", "ctrace-secret", "known", 5, SESSION) < 0) {
            perror("keys");
            return 77;
        }
        execvp(words[2], words + 2);
        return 127;
    }
    long key = look();
    char text[16] = "";
    if (key < 0 || syscall(SYS_keyctl, READ, key, text, sizeof text - 1) < 0)
        puts("nothing");
    else
        puts(text);
    return 0;
}
