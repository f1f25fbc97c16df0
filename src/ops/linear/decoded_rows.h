// Products with a weight whose rows are decoded, or converted, a few at a time.
#pragma once

#include "base/error.h"
#include "ops/linear/cpu_rows.h"
#include "ops/linear/scratch.h"

namespace headroom {

class DecodedRows {
 public:
  // Rows of the weight are decoded to `dtype`, that of the rows of x in a pass.
  DecodedRows(const RowsPlan& plan, DType dtype, DType y, const DeviceFacts& facts)
      : range_(products_of({dtype, dtype, y}, plan, facts)),
        y_(y),
        tiles_(plan.tiles),
        rows_(most_decoded_rows(plan.tiles, plan.count)),
        row_bytes_(decoded_row_bytes(plan.ins, dtype)),
        threads_(facts.threads) {}

  // Scratch in front of that of each_part().
  int64_t bytes() const { return threads_ * rows_ * row_bytes_; }

  // decode(i, row, rows, to): rows of the weight of output i.
  template <typename Decode>
  void run(const KernelCall& call, const RowsPlan& plan, const Decode& decode) const {
    HR_CHECK(threads() <= threads_, "scratch for {} threads, a team of {}", threads_, threads());
    each_part(call, plan, call.scratch.data() + bytes(), rows_,
              [&](size_t i, const RowProduct& product, int64_t begin, int64_t end, int thread) {
                columns(product, begin, end, call.scratch.data() + thread * rows_ * row_bytes_,
                        [&](int64_t row, int64_t count, void* to) { decode(i, row, count, to); });
              });
  }

 private:
  // With one row of x, the decoded rows stay in the first-level cache, with more in the second-level cache; blocks of
  // rows have a fixed number of columns.
  int64_t most(const RowProduct& product) const {
    constexpr int64_t kCacheBytes = int64_t{1} << 18;
    if (tiles_) return decoded_tile_rows(product.rows);
    if (product.rows == 1) return kDecodedRows / 3;
    if (product.arranged) return kBlockRows;
    return kDecodedRows * row_bytes_ > kCacheBytes ? kDecodedRows / 2 : kDecodedRows;
  }

  // Columns begin .. end of `whole`, a few at a time.
  template <typename Decode>
  void columns(const RowProduct& whole, int64_t begin, int64_t end, std::byte* decoded, const Decode& decode) const {
    RowProduct piece = whole;
    piece.w = decoded;
    for (int64_t out = begin; out < end; out += most(whole)) {
      const int64_t count = std::min(most(whole), end - out);
      decode(out, count, decoded);
      if (whole.bias) piece.bias = whole.bias + out;
      if (whole.residual) piece.residual = behind(whole.residual, out, y_);
      piece.y = const_cast<std::byte*>(behind(whole.y, out, y_));
      range_(piece, 0, count);
    }
  }

  ColumnRange range_;
  DType y_;
  bool tiles_;
  int64_t rows_;  // decoded at a time, at most
  int64_t row_bytes_;
  int64_t threads_;
};

}  // namespace headroom
