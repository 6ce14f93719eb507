#include "cli/parts/block_order.h"

#include <algorithm>
#include <cstdio>

#include "cli/parts/svg_text.h"

namespace onepass::cli {
namespace {

constexpr int grid_px = 320;
constexpr int margin_px = 48;
constexpr int title_px = 400;  // what a panel's title needs

// Formats into a std::string.
template <class... T>
std::string format(const char* pattern, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// A colour channel on the way from early to late.
int between(int early, int late, double time) {
  return early + static_cast<int>((late - early) * time);
}

std::string label(double x, double y, int size_px, const char* anchor, const std::string& text,
                  const char* fill = "#333") {
  return format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x,
                y, size_px, anchor, fill) +
         escaped(text) + "</text>\n";
}

std::string draw_panel(const BlockPanel& panel, double left, double cell_px, std::int64_t q_blocks,
                       std::int64_t k_blocks) {
  const double top = margin_px + 24;
  const double width = cell_px * static_cast<double>(k_blocks);
  const double height = cell_px * static_cast<double>(q_blocks);
  std::string svg = label(left, margin_px - 22, 15, "start", panel.title);
  svg += label(left, margin_px - 4, 11, "start", panel.caption, "#777");
  svg += label(left, top - 6, 11, "start", "key blocks \xE2\x86\x92");
  svg += format(
      "<text transform=\"translate(%.1f %.1f) rotate(90)\" font-size=\"11\" "
      "fill=\"#333\">query blocks \xE2\x86\x92</text>\n",
      left - 14, top);
  svg += format(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fff\" "
      "stroke=\"#999\"/>\n",
      left, top, width, height);
  const double steps = std::max<double>(1.0, static_cast<double>(panel.order.size()) - 1.0);
  std::string path;
  for (std::size_t step = 0; step < panel.order.size(); ++step) {
    const double x = left + cell_px * static_cast<double>(panel.order[step].k_block);
    const double y = top + cell_px * static_cast<double>(panel.order[step].q_block);
    const double time = static_cast<double>(step) / steps;
    svg += format(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
        "fill=\"#%02x%02x%02x\" stroke=\"#fff\"/>\n",
        x, y, cell_px, cell_px, between(214, 24, time), between(229, 92, time),
        between(245, 160, time));
    if (cell_px >= 24) {
      svg += label(x + cell_px / 2, y + cell_px / 2 + 4, 11, "middle", std::to_string(step + 1),
                   time > 0.5 ? "#fff" : "#123");
    }
    path += format("%s%.1f %.1f ", step == 0 ? "M" : "L", x + cell_px / 2, y + cell_px / 2);
  }
  return svg + "<path d=\"" + path +
         "\" fill=\"none\" stroke=\"#e07020\" stroke-width=\"1.2\" opacity=\"0.55\"/>\n";
}

}  // namespace

std::string draw_block_order(const std::vector<BlockPanel>& panels, std::int64_t q_blocks,
                             std::int64_t k_blocks) {
  const double longest = static_cast<double>(std::max({q_blocks, k_blocks, std::int64_t{1}}));
  const double cell_px = std::min(48.0, grid_px / longest);
  const double panel_px = std::max(grid_px + margin_px, title_px);
  std::string body;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const double left = margin_px + static_cast<double>(i) * panel_px;
    body += draw_panel(panels[i], left, cell_px, q_blocks, k_blocks);
  }
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
             "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
             "fill=\"#fff\"/>\n",
             margin_px + panel_px * static_cast<double>(panels.size()),
             margin_px + 48 + cell_px * static_cast<double>(q_blocks)) +
         body + "</svg>\n";
}

}  // namespace onepass::cli
