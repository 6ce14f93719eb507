#include <cstdio>

#include "onepass/plan.h"

namespace onepass {

std::string explain(const Plan& plan) {
  char mebibytes[32];
  std::snprintf(mebibytes, sizeof mebibytes, "%.2f MiB",
                static_cast<double>(plan.workspace_bytes) / (1 << 20));
  std::string text = "problem    " + plan.problem_line + "\n";
  text += "kernel     " + plan.kernel + " (" + plan.reason + ")\n";
  text += "tile       " + std::to_string(plan.tile.rows) + " queries x " +
          std::to_string(plan.tile.keys) + " keys, splits " + std::to_string(plan.splits) + "\n";
  text += "threads    " + std::to_string(plan.threads) + "\n";
  text += "workspace  " + std::to_string(plan.workspace_bytes) + " bytes (" + mebibytes + ")\n";
  text += "yes  " + plan.kernel + "\n";
  for (const Refusal& refusal : plan.refused) {
    text += "no   " + refusal.kernel + ": " + refusal.reason + "\n";
  }
  return text;
}

}  // namespace onepass
