// The distribution of row lengths in a fixed number of bins, and what cutting rows would lose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headroom {

class LengthHistogram {
 public:
  struct Bin {
    int64_t rows = 0;
    int64_t tokens = 0;
    bool operator==(const Bin&) const = default;
  };
  // Upper edges 16, 24, 32, 48, 64, ... 2^20, and a last bin without one.
  static constexpr size_t kBins = 34;
  // The longest length of a bin; INT64_MAX for the last.
  static int64_t edge(size_t bin);

  LengthHistogram() = default;
  explicit LengthHistogram(const std::array<Bin, kBins>& bins) : bins_(bins) {}

  // A row of `length` >= 1 tokens.
  void add(int64_t length);

  int64_t rows() const;
  int64_t tokens() const;
  // Rows longer than `cut`, an edge, and the tokens that cutting them there loses.
  int64_t cut_rows(int64_t cut) const;
  int64_t lost_tokens(int64_t cut) const;
  // The smallest edge (or INT64_MAX) that at least this share of the rows does not exceed; 0 without rows.
  int64_t quantile(double share) const;
  const std::array<Bin, kBins>& bins() const { return bins_; }
  bool operator==(const LengthHistogram&) const = default;

 private:
  std::array<Bin, kBins> bins_{};
};

// Cuts to report: 128, 256, 512, ... up to `longest`, which comes last if it is an edge.
std::vector<int64_t> length_cuts(int64_t longest);

// "row lengths: half up to 192 tokens, 95 % up to 768, ...; cut at 128 loses 31.2 %, ..." for people; empty without
// rows. `longest`: of the model.
std::string describe_lengths(const LengthHistogram& lengths, int64_t longest);

// {"rows","tokens","histogram":[{"up_to" (not in the last
// bin),"rows","tokens"}],"cuts":[{"length","cut_rows","lost_tokens"}]} as JSON.
std::string lengths_json(const LengthHistogram& lengths, int64_t longest);

}  // namespace headroom
