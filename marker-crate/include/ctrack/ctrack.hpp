// The target of `#include "ctrack.hpp"` if this folder replaces CTRACK's.
#pragma once
#include "../ctrack_compat.hpp"
