/* A mistake: a format that is no literal. */
#include "ctrace.h"

void tell(const char *text);
void tell(const char *text) { CTRACE_MESSAGE(text); }
