/* The library of dl.c, with its own runtime. */
#include "support.h"

/* Switches the scopes of this library on or off. */
int plugin_switch(int on);
int plugin_switch(int on) { return switch_to(NULL, on); }
struct ctrace_c1_buffer *plugin_list(void);
struct ctrace_c1_buffer *plugin_list(void) { return ctrace_c1_list; }
void plugin_capture(void);
void plugin_capture(void) { capture(); announce_flushes = 1; }
int plugin_count(void);
int plugin_count(void) { return event_count; }
int plugin_work(int x);
int plugin_work(int x) {
    CTRACE_FUNCTION;
    return x + 1;
}
