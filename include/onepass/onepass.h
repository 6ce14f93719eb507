#pragma once

#include "onepass/attention.h"
#include "onepass/plan.h"
