#include "pipeline/drawing.h"

#include <algorithm>
#include <vector>

#include "pipeline/markup.h"

namespace baton::pipeline {
namespace {

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + "\"";
}

constexpr char kStyle[] =
    "<style>.page{fill:#fff}.edge{fill:none;stroke:#889}.module rect{fill:#eef3fb;stroke:#468}.module "
    "text{fill:#123}"
    ".module.pinned rect{stroke:#b60}@media(prefers-color-scheme:dark){.page{fill:#1c2027}.edge{stroke:#667}"
    ".module rect{fill:#252b35;stroke:#7a9cc6}.module text{fill:#dde3ec}}</style>\n";

template <class Tell>
void each_edge(const Graph& graph, const Tell& tell) {
  for (NodeIndex node = 0; node < graph.size(); ++node) {
    for (const GraphNeed& need : graph[node].needs) {
      for (const NodeIndex other : need.on) tell(other, node, need.kind);
    }
  }
}

}  // namespace

std::string dot_of(const Graph& graph) {
  std::string text = "digraph " + quoted(graph.definition().name) +
                     " {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n";
  for (const GraphNode& node : graph.nodes()) {
    text += "  " + quoted(node.id);
    if (node.spec->pinned) text += " [peripheries=2]";
    text += ";\n";
  }
  each_edge(graph, [&](NodeIndex from, NodeIndex to, NeedKind kind) {
    text += "  " + quoted(graph[from].id) + " -> " + quoted(graph[to].id) +
            (kind == NeedKind::required ? "" : " [style=dashed]") + ";\n";
  });
  return text + "}\n";
}

std::string svg_of(const Graph& graph, const std::function<std::string(NodeIndex)>& class_of) {
  constexpr int kWidth = 170, kHeight = 34, kGapX = 60, kGapY = 16, kMargin = 20;
  std::vector<int> wave(graph.size()), row(graph.size());
  for (const NodeIndex node : graph.in_order()) {
    for (const NodeIndex other : graph[node].dependants) wave[other] = std::max(wave[other], wave[node] + 1);
  }
  std::vector<int> rows;
  for (const NodeIndex node : graph.in_order()) {
    const auto in = static_cast<std::size_t>(wave[node]);
    if (rows.size() <= in) rows.resize(in + 1);
    row[node] = rows[in]++;
  }
  const auto left = [&](NodeIndex node) { return kMargin + wave[node] * (kWidth + kGapX); };
  const auto top = [&](NodeIndex node) { return kMargin + row[node] * (kHeight + kGapY); };
  const int deepest = rows.empty() ? 1 : *std::ranges::max_element(rows);
  const std::string width =
      std::to_string(2 * kMargin + static_cast<int>(rows.size()) * (kWidth + kGapX) - kGapX);
  const std::string height = std::to_string(2 * kMargin + deepest * (kHeight + kGapY) - kGapY);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                     "\" viewBox=\"0 0 " + width + " " + height +
                     "\" font-family=\"sans-serif\" font-size=\"13\">\n" + kStyle +
                     "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
  each_edge(graph, [&](NodeIndex from, NodeIndex to, NeedKind kind) {
    const int x1 = left(from) + kWidth, y1 = top(from) + kHeight / 2, x2 = left(to),
              y2 = top(to) + kHeight / 2;
    const int bend = (x1 + x2) / 2;
    const auto point = [](int x, int y) { return std::to_string(x) + "," + std::to_string(y); };
    text += "<path class=\"edge\" d=\"M" + point(x1, y1) + " C" + point(bend, y1) + " " + point(bend, y2) +
            " " + point(x2, y2) + "\"" + (kind == NeedKind::required ? "" : " stroke-dasharray=\"4 3\"") +
            "/>\n";
  });
  for (NodeIndex node = 0; node < graph.size(); ++node) {
    const std::string& id = graph[node].id;
    constexpr std::size_t kShown = 22;
    text += "<g class=\"module" + std::string(graph[node].spec->pinned ? " pinned" : "") +
            (class_of ? " " + class_of(node) : "") + "\"><title>" + escaped(id) + "</title><rect x=\"" +
            std::to_string(left(node)) + "\" y=\"" + std::to_string(top(node)) + "\" width=\"" +
            std::to_string(kWidth) + "\" height=\"" + std::to_string(kHeight) + "\" rx=\"6\"/><text x=\"" +
            std::to_string(left(node) + kWidth / 2) + "\" y=\"" +
            std::to_string(top(node) + kHeight / 2 + 5) + "\" text-anchor=\"middle\">" +
            escaped(id.size() > kShown ? id.substr(0, kShown - 1) + "\xe2\x80\xa6" : id) + "</text></g>\n";
  }
  return text + "</svg>\n";
}

}  // namespace baton::pipeline
