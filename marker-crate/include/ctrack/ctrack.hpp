// What `#include "ctrack.hpp"` finds when this folder takes the place of CTRACK's.
#pragma once
#include "../ctrack_compat.hpp"
