#include "cli/parts/bench_row.h"

#include <cstdio>

#include "onepass/status.h"

namespace onepass::cli {
namespace {

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double share_percent(const BenchRow& row) {
  return row.peak_gflops > 0.0 ? 100.0 * row.gflops / row.peak_gflops : 0.0;
}

double read_percent(const BenchRow& row) {
  return row.peak_read_gb_s > 0.0 ? 100.0 * row.read_gb_s / row.peak_read_gb_s : 0.0;
}

std::string markdown(const BenchRow& row) {
  std::string line;
  for (const char c : row.line) line += c == '|' ? std::string("\\|") : std::string(1, c);
  return "| `" + line + "` | " + row.kernel + " | " + std::to_string(row.threads) + " | " +
         number("%.1f", 100.0 * row.visible_share) + " | " +
         number("%.3f", row.timing.median_s * 1e3) + " | " +
         number("%.3f", row.timing.min_s * 1e3) + " | " + number("%.3f", row.timing.p90_s * 1e3) +
         " | " + std::to_string(row.timing.runs) + " | " + number("%.1f", row.gflops) + " | " +
         (row.peak_gflops > 0.0 ? number("%.1f", share_percent(row)) : "") + " | " +
         (row.peak_read_gb_s > 0.0
              ? number("%.1f", row.read_gb_s) + " (" + number("%.1f", read_percent(row)) + " %)"
              : "") +
         " | " + number("%.1e", row.error) + (row.right ? "" : " wrong") + " |\n";
}

// Quotes doubled for csv, escaped for json.
std::string quoted(const std::string& text, const char* quote) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') {
      result += quote;
    } else if (c == '\\' && quote[0] == '\\') {
      result += "\\\\";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string csv(const BenchRow& row) {
  return quoted(row.line, "\"\"") + "," + row.kernel + "," + std::to_string(row.threads) + "," +
         number("%.6f", row.visible_share) + "," + number("%.9f", row.timing.median_s) + "," +
         number("%.9f", row.timing.min_s) + "," + number("%.9f", row.timing.p90_s) + "," +
         std::to_string(row.timing.runs) + "," + number("%.3f", row.gflops) + "," +
         number("%.3f", row.peak_gflops) + "," + number("%.2f", share_percent(row)) + "," +
         number("%.3f", row.read_gb_s) + "," + number("%.3f", row.peak_read_gb_s) + "," +
         number("%.2f", read_percent(row)) + "," + number("%.3e", row.error) + "," +
         (row.right ? "true" : "false") + ",warm\n";
}

std::string jsonl(const BenchRow& row) {
  // JSON has no infinity: a wrong answer without bound is null.
  const std::string error = row.error < 1e300 ? number("%.3e", row.error) : "null";
  return "{\"problem\": " + quoted(row.line, "\\\"") + ", \"kernel\": \"" + row.kernel +
         "\", \"threads\": " + std::to_string(row.threads) +
         ", \"visible\": " + number("%.6f", row.visible_share) +
         ", \"median_s\": " + number("%.9f", row.timing.median_s) +
         ", \"min_s\": " + number("%.9f", row.timing.min_s) +
         ", \"p90_s\": " + number("%.9f", row.timing.p90_s) +
         ", \"runs\": " + std::to_string(row.timing.runs) +
         ", \"gflops\": " + number("%.3f", row.gflops) +
         ", \"peak_gflops\": " + number("%.3f", row.peak_gflops) +
         ", \"share_percent\": " + number("%.2f", share_percent(row)) +
         ", \"read_gb_s\": " + number("%.3f", row.read_gb_s) +
         ", \"peak_read_gb_s\": " + number("%.3f", row.peak_read_gb_s) +
         ", \"read_percent\": " + number("%.2f", read_percent(row)) + ", \"error\": " + error +
         ", \"right\": " + (row.right ? "true" : "false") + ", \"cache\": \"warm\"}\n";
}

}  // namespace

RowFormat row_format_of(std::string_view argument, std::string_view text) {
  if (text == "md") return RowFormat::markdown;
  if (text == "csv") return RowFormat::csv;
  if (text == "jsonl") return RowFormat::jsonl;
  throw Error(Status::invalid(std::string(argument) + ": \"" + std::string(text) +
                              "\"; md, csv and jsonl are allowed; name one"));
}

std::string head_of(RowFormat format) {
  switch (format) {
    case RowFormat::markdown:
      return "| problem | kernel | threads | visible % | median ms | min ms | p90 ms | runs | "
             "GFLOP/s | % of peak | GB/s read (of the best) | error |\n"
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    case RowFormat::csv:
      return "problem,kernel,threads,visible,median_s,min_s,p90_s,runs,gflops,peak_gflops,"
             "share_percent,read_gb_s,peak_read_gb_s,read_percent,error,right,cache\n";
    case RowFormat::jsonl:
      return "";
  }
  return "";
}

std::string to_text(const BenchRow& row, RowFormat format) {
  if (format == RowFormat::markdown) return markdown(row);
  return format == RowFormat::csv ? csv(row) : jsonl(row);
}

}  // namespace onepass::cli
