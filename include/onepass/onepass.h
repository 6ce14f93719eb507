#pragma once

#include "onepass/attention.h"
#include "onepass/backward.h"
#include "onepass/kv_cache.h"
#include "onepass/plan.h"
