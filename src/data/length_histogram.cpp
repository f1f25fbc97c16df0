#include "data/length_histogram.h"

#include <fmt/format.h>

#include <iterator>

namespace headroom {

int64_t LengthHistogram::edge(size_t bin) {
  if (bin + 1 >= kBins) return INT64_MAX;
  return int64_t{bin % 2 == 0 ? 16 : 24} << (bin / 2);
}

void LengthHistogram::add(int64_t length) {
  size_t bin = 0;
  while (length > edge(bin)) ++bin;
  ++bins_[bin].rows;
  bins_[bin].tokens += length;
}

int64_t LengthHistogram::rows() const {
  int64_t rows = 0;
  for (const Bin& bin : bins_) rows += bin.rows;
  return rows;
}

int64_t LengthHistogram::tokens() const {
  int64_t tokens = 0;
  for (const Bin& bin : bins_) tokens += bin.tokens;
  return tokens;
}

int64_t LengthHistogram::cut_rows(int64_t cut) const {
  int64_t rows = 0;
  for (size_t bin = 0; bin < kBins; ++bin)
    if (edge(bin) > cut) rows += bins_[bin].rows;
  return rows;
}

int64_t LengthHistogram::lost_tokens(int64_t cut) const {
  int64_t lost = 0;
  for (size_t bin = 0; bin < kBins; ++bin)
    if (edge(bin) > cut) lost += bins_[bin].tokens - cut * bins_[bin].rows;
  return lost;
}

int64_t LengthHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(rows());
  int64_t seen = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    seen += bins_[bin].rows;
    if (seen > 0 && static_cast<double>(seen) >= wanted) return edge(bin);
  }
  return 0;
}

std::vector<int64_t> length_cuts(int64_t longest) {
  std::vector<int64_t> cuts;
  for (int64_t cut = 128; cut <= longest && cut <= LengthHistogram::edge(LengthHistogram::kBins - 2); cut *= 2)
    cuts.push_back(cut);
  if (cuts.empty() && longest >= 16) cuts.push_back(16);
  return cuts;
}

std::string describe_lengths(const LengthHistogram& lengths, int64_t longest) {
  if (lengths.rows() == 0) return {};
  const auto up_to = [](int64_t edge) {
    return edge == INT64_MAX ? std::string("any length") : fmt::format("{} tokens", edge);
  };
  std::string text = fmt::format("row lengths: half up to {}, 95 % up to {}", up_to(lengths.quantile(0.5)),
                                 up_to(lengths.quantile(0.95)));
  for (int64_t cut : length_cuts(longest)) {
    const int64_t lost = lengths.lost_tokens(cut);
    if (lost == 0) break;
    fmt::format_to(std::back_inserter(text), "; cut at {} loses {:.1f} %", cut,
                   100.0 * static_cast<double>(lost) / static_cast<double>(lengths.tokens()));
  }
  return text;
}

std::string lengths_json(const LengthHistogram& lengths, int64_t longest) {
  std::string text =
      fmt::format("{{\"rows\": {}, \"tokens\": {},\n \"histogram\": [", lengths.rows(), lengths.tokens());
  auto out = std::back_inserter(text);
  const char* comma = "";
  for (size_t bin = 0; bin < LengthHistogram::kBins; ++bin) {
    const LengthHistogram::Bin& held = lengths.bins()[bin];
    if (held.rows == 0) continue;
    const int64_t edge = LengthHistogram::edge(bin);
    const std::string up_to = edge == INT64_MAX ? "" : fmt::format("\"up_to\": {}, ", edge);
    fmt::format_to(out, "{}\n  {{{}\"rows\": {}, \"tokens\": {}}}", comma, up_to, held.rows, held.tokens);
    comma = ",";
  }
  text += "],\n \"cuts\": [";
  comma = "";
  for (int64_t cut : length_cuts(longest)) {
    fmt::format_to(out, "{}\n  {{\"length\": {}, \"cut_rows\": {}, \"lost_tokens\": {}}}", comma, cut,
                   lengths.cut_rows(cut), lengths.lost_tokens(cut));
    comma = ",";
  }
  return text + "]}\n";
}

}  // namespace headroom
