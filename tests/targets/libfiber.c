/* A library for opened_fiber.c that switches stacks. */
#include "switch_stack.h"
