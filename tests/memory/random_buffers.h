// Random buffers from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "memory/buffer.h"

namespace headroom::testing {

// `count` buffers on slots [0, slots) with sizes of 0..largest times `unit` bytes.
inline std::vector<Buffer> random_buffers(std::mt19937_64& random, int count, int64_t slots, int64_t largest,
                                          int64_t unit = 1) {
  const auto below = [&random](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int64_t lower = below(slots);
    buffers.push_back({i, lower, lower + 1 + below(slots - lower), below(largest + 1) * unit, -1});
  }
  return buffers;
}

// Buffers whose live sizes sum to exactly `height` in each of `slots` slots: in each slot two live buffers end and new
// ones with the same total start, of 2 to 5 bytes if possible. Some have no assignment of that height.
inline std::vector<Buffer> tight_buffers(std::mt19937_64& random, int64_t slots, int64_t height) {
  const auto below = [&random](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  std::vector<Buffer> buffers;
  std::vector<size_t> live;
  const auto fill = [&](int64_t slot, int64_t bytes) {
    while (bytes > 0) {
      int64_t size = 2 + below(4);
      if (size > bytes || bytes - size < 2) size = bytes;
      live.push_back(buffers.size());
      buffers.push_back({static_cast<int64_t>(buffers.size()), slot, slots, size, -1});
      bytes -= size;
    }
  };
  fill(0, height);
  for (int64_t slot = 1; slot < slots; ++slot) {
    int64_t freed = 0;
    for (int k = 0; k < 2 && !live.empty(); ++k) {
      const auto at = static_cast<size_t>(below(static_cast<int64_t>(live.size())));
      buffers[live[at]].upper = slot;
      freed += buffers[live[at]].size;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    fill(slot, freed);
  }
  return buffers;
}

// The pieces of a slots x height rectangle cut at random: they fit in `height` without a gap.
inline std::vector<Buffer> dissected_buffers(std::mt19937_64& random, int64_t slots, int64_t height, int cuts) {
  struct Piece {
    int64_t left, right, bottom, top;
  };
  std::vector<Piece> pieces = {{0, slots, 0, height}};
  for (int k = 0; k < cuts; ++k) {
    const auto at = static_cast<size_t>(random() % pieces.size());
    const Piece piece = pieces[at];
    const bool vertical = random() % 2 == 0;
    const int64_t extent = vertical ? piece.right - piece.left : piece.top - piece.bottom;
    if (extent < 2) continue;
    const int64_t cut = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(extent - 1));
    if (vertical) {
      pieces[at].right = piece.left + cut;
      pieces.push_back({piece.left + cut, piece.right, piece.bottom, piece.top});
    } else {
      pieces[at].top = piece.bottom + cut;
      pieces.push_back({piece.left, piece.right, piece.bottom + cut, piece.top});
    }
  }
  std::vector<Buffer> buffers;
  for (const Piece& piece : pieces) {
    buffers.push_back({static_cast<int64_t>(buffers.size()), piece.left, piece.right, piece.top - piece.bottom, -1});
  }
  return buffers;
}

}  // namespace headroom::testing
