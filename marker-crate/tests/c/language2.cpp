#include "language.h"
int twice_elsewhere(int x) { return twice(x); }
long unused(long x);
long unused(long x) { return generic(x); }
