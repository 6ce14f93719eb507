// One measured line of bench, as text.
#pragma once

#include <string>
#include <string_view>

#include "cli/parts/timing.h"

namespace onepass::cli {

struct BenchRow {
  std::string line, kernel;
  int threads = 1;
  double visible_share = 0.0;
  Timing timing;
  double gflops = 0.0;       // visible work over the median
  double peak_gflops = 0.0;  // all threads together; 0 = unknown
  // Keys and values read over the median, and what as many threads read at best from as much
  // memory; 0 where arithmetic, not reading, is what a kernel does.
  double read_gb_s = 0.0, peak_read_gb_s = 0.0;
  double error = 0.0;  // to float64, in the rows compared
  bool right = false;
};

enum class RowFormat { markdown, csv, jsonl };

/// md, csv or jsonl. Throws Error.
RowFormat row_format_of(std::string_view argument, std::string_view text);

/// What comes before the rows.
std::string head_of(RowFormat format);
std::string to_text(const BenchRow& row, RowFormat format);

}  // namespace onepass::cli
