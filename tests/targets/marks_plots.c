/* Plots what lines on its standard input say, and answers each with `done`.
 *
 *   queue NUMBER    with the unit `jobs`
 *   load NUMBER     in the group `health`; `nan` and `inf` are numbers, too
 */
#include "marks.h"

int main(void) {
    char line[100], name[32];
    double number;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%31s %lf", name, &number) == 2) {
            if (strcmp(name, "queue") == 0)
                CTRACE_PLOT_UNIT("queue", "jobs", (long)number);
            else
                CTRACE_PLOT_IN(health, "load", number);
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
