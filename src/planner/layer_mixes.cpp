#include "planner/layer_mixes.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace headroom {
namespace {

constexpr int64_t kMostSteps = 96;
constexpr int64_t kCells = 2048;
constexpr int64_t kFew = 2;       // layers of an option besides the two that have any number
constexpr size_t kOfAKind = 256;  // mixes of each of two kinds that are combined

// An option with its sums over the first so many layers of a kind.
struct Sums {
  uint8_t option = 0;
  std::vector<int64_t> saved{0};
  std::vector<double> redone{0};
};

// The fastest mix of each range of bytes.
class Cells {
 public:
  Cells(int64_t least, int64_t most) : least_(least), width_(std::max<int64_t>(1, (most - least) / kCells + 1)) {}

  // Whether a mix is the best of its cell so far; the caller then fills in the cell.
  LayerMix* place_for(int64_t saved, double redone) {
    const size_t cell = static_cast<size_t>((saved - least_) / width_);
    if (cell >= mixes_.size()) mixes_.resize(cell + 1), used_.resize(cell + 1, false);
    LayerMix& best = mixes_[cell];
    if (used_[cell] && (best.redone < redone || (best.redone == redone && best.saved <= saved))) return nullptr;
    used_[cell] = true;
    best = {};
    best.saved = saved, best.redone = redone;
    return &best;
  }

  std::vector<LayerMix> unbeaten() const {
    std::vector<LayerMix> out;
    for (size_t i = 0; i < mixes_.size(); ++i)
      if (used_[i] && (out.empty() || mixes_[i].redone < out.back().redone)) out.push_back(mixes_[i]);
    return out;
  }

 private:
  int64_t least_, width_;
  std::vector<LayerMix> mixes_;
  std::vector<bool> used_;
};

// The least and the most that layers of a kind keep under the options.
std::pair<int64_t, int64_t> kept_range(const std::vector<Sums>& options) {
  int64_t least = 0, most = 0;
  for (size_t layer = 1; layer < options.front().saved.size(); ++layer) {
    int64_t low = INT64_MAX, high = 0;
    for (const Sums& sums : options) {
      const int64_t bytes = sums.saved[layer] - sums.saved[layer - 1];
      low = std::min(low, bytes), high = std::max(high, bytes);
    }
    least += low, most += high;
  }
  return {least, most};
}

// The mixes of one kind of layers.
class OneKind {
 public:
  OneKind(std::span<const LayerFacts> options, std::span<const uint8_t> kinds, uint8_t kind, int64_t unit)
      : kind_(kind), unit_(unit) {
    std::vector<Sums> all(options.size());
    for (size_t i = 0; i < options.size(); ++i) {
      all[i].option = static_cast<uint8_t>(i);
      for (size_t layer = 0; layer < kinds.size(); ++layer)
        if (kinds[layer] == kind) {
          all[i].saved.push_back(all[i].saved.back() + options[i].saved[layer]);
          all[i].redone.push_back(all[i].redone.back() + options[i].redone[layer]);
        }
    }
    layers_ = static_cast<int64_t>(all.front().saved.size()) - 1;
    step_ = align_up((layers_ + kMostSteps - 1) / kMostSteps, unit);
    range_ = kept_range(all);
    std::stable_sort(all.begin(), all.end(), [](const Sums& a, const Sums& b) {
      return a.saved.back() != b.saved.back() ? a.saved.back() < b.saved.back() : a.redone.back() < b.redone.back();
    });
    for (Sums& sums : all)
      if (useful_.empty() || sums.redone.back() < useful_.back().redone.back()) useful_.push_back(std::move(sums));
  }

  std::vector<LayerMix> unbeaten() {
    Cells cells(range_.first, range_.second);
    const size_t options = useful_.size();
    for (size_t d = 0; d < options; ++d) {
      add(cells, {d, d, d, d}, {0, 0, 0, layers_});
      for (size_t c = 0; c < d; ++c) {
        add_mixes(cells, {c, c, c, d}, 2);
        for (size_t b = 0; b < c; ++b) {
          add_mixes(cells, {b, b, c, d}, 1);
          for (size_t a = 0; a < b; ++a) add_mixes(cells, {a, b, c, d}, 0);
        }
      }
    }
    return cells.unbeaten();
  }

  std::pair<int64_t, int64_t> range() const { return range_; }

 private:
  using Options = std::array<size_t, kMostRuns>;

  // The mixes in which each of the options from `from` on has layers: two of them any number, the others a few.
  void add_mixes(Cells& cells, const Options& options, size_t from) {
    for (size_t one = from; one < kMostRuns; ++one)
      for (size_t other = one + 1; other < kMostRuns; ++other) {
        if (other + 1 < kMostRuns && layers_ % unit_ != 0) continue;  // only the last run is not a multiple
        std::array<int64_t, kMostRuns> runs{};
        add_few(cells, options, runs, from, one, other);
      }
  }

  void add_few(Cells& cells, const Options& options, std::array<int64_t, kMostRuns>& runs, size_t next, size_t one,
               size_t other) {
    if (next == one || next == other) return add_few(cells, options, runs, next + 1, one, other);
    if (next == kMostRuns) return add_many(cells, options, runs, one, other);
    for (runs[next] = unit_; runs[next] <= kFew * unit_; runs[next] += unit_)
      add_few(cells, options, runs, next + 1, one, other);
    runs[next] = 0;
  }

  void add_many(Cells& cells, const Options& options, std::array<int64_t, kMostRuns>& runs, size_t one, size_t other) {
    runs[one] = runs[other] = 0;
    const int64_t rest = layers_ - runs[0] - runs[1] - runs[2] - runs[3];
    for (runs[one] = step_; runs[one] < rest; runs[one] += step_) {
      runs[other] = rest - runs[one];
      add(cells, options, runs);
    }
    runs[one] = runs[other] = 0;
  }

  void add(Cells& cells, const Options& options, const std::array<int64_t, kMostRuns>& runs) {
    int64_t saved = 0;
    double redone = 0;
    size_t from = 0;
    for (size_t i = 0; i < kMostRuns; ++i) {
      const Sums& sums = useful_[options[i]];
      const size_t to = from + static_cast<size_t>(runs[i]);
      saved += sums.saved[to] - sums.saved[from];
      redone += sums.redone[to] - sums.redone[from];
      from = to;
    }
    LayerMix* const mix = cells.place_for(saved, redone);
    if (!mix) return;
    for (size_t i = 0; i < kMostRuns; ++i) {
      mix->kinds[kind_].option[i] = useful_[options[i]].option;
      mix->kinds[kind_].layers[i] = static_cast<int32_t>(runs[i]);
    }
  }

  uint8_t kind_;
  int64_t unit_, step_ = 1, layers_ = 0;
  std::pair<int64_t, int64_t> range_;
  std::vector<Sums> useful_;  // ascending in what all layers keep, strictly descending in time
};

// At most so many, the first and the last among them.
std::vector<LayerMix> thinned(const std::vector<LayerMix>& mixes) {
  if (mixes.size() <= kOfAKind) return mixes;
  std::vector<LayerMix> out;
  for (size_t i = 0; i < kOfAKind; ++i) out.push_back(mixes[i * (mixes.size() - 1) / (kOfAKind - 1)]);
  return out;
}

}  // namespace

bool LayerMix::one_option() const {
  int found = -1;
  for (const LayerRuns& runs : kinds)
    for (size_t i = 0; i < kMostRuns; ++i) {
      if (runs.layers[i] == 0) continue;
      if (found >= 0 && found != runs.option[i]) return false;
      found = runs.option[i];
    }
  return true;
}

std::vector<uint8_t> LayerMix::options(std::span<const uint8_t> kinds_of_layers) const {
  std::vector<uint8_t> out;
  std::array<size_t, kMostKinds> run{};
  std::array<int32_t, kMostKinds> taken{};
  for (const uint8_t kind : kinds_of_layers) {
    while (taken[kind] == kinds[kind].layers[run[kind]]) ++run[kind], taken[kind] = 0;
    ++taken[kind];
    out.push_back(kinds[kind].option[run[kind]]);
  }
  return out;
}

std::vector<LayerMix> unbeaten_mixes(std::span<const LayerFacts> options, std::span<const uint8_t> kinds,
                                     int64_t unit) {
  if (options.empty() || kinds.empty()) return {};
  OneKind first(options, kinds, 0, unit);
  const std::vector<LayerMix> of_first = first.unbeaten();
  if (std::count(kinds.begin(), kinds.end(), uint8_t{1}) == 0) return of_first;
  OneKind second(options, kinds, 1, unit);
  const std::vector<LayerMix> left = thinned(of_first), right = thinned(second.unbeaten());
  Cells cells(first.range().first + second.range().first, first.range().second + second.range().second);
  for (const LayerMix& a : left)
    for (const LayerMix& b : right)
      if (LayerMix* const mix = cells.place_for(a.saved + b.saved, a.redone + b.redone))
        mix->kinds = {a.kinds[0], b.kinds[1]};
  return cells.unbeaten();
}

int64_t work_of(std::span<const LayerFacts> facts, std::span<const uint8_t> options) {
  int64_t most = 0, before = 0;
  for (size_t layer = 0; layer < options.size(); ++layer) {
    const LayerFacts& of = facts[options[layer]];
    most = std::max(most, before + of.work[layer]);
    before += of.saved[layer];
  }
  return most;
}

}  // namespace headroom
