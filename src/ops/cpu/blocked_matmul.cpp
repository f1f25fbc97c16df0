#include "ops/cpu/blocked_matmul.h"

#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/coded_matrix.h"

namespace headroom {
namespace {

// A range of rows or columns, in tiles.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

Range piece(int64_t index, int64_t size, int64_t count) {
  return {std::min(count, index * size), std::min(count, (index + 1) * size)};
}

class BlockedMatmul final : public Matmul {
 public:
  BlockedMatmul(const MatmulSpec& spec, const TileKernel& kernel, const MatmulBlocks& blocks)
      : spec_(spec),
        kernel_(kernel),
        tile_(kernel.traits),
        blocks_(blocks),
        a_stride_(spec.a_transposed ? spec.size.rows : spec.size.depth),
        b_stride_(spec.b_transposed ? spec.size.depth : spec.size.cols) {}

  int64_t scratch_bytes() const override { return blocks_.total_bytes(); }

  void run(const MatmulArguments& arguments) const override {
    parallel_for(blocks_.grid_rows * blocks_.grid_cols, 1, [&](int64_t begin, int64_t end, int) {
      if (kernel_.enter) kernel_.enter();
      for (int64_t cell = begin; cell < end; ++cell) run_cell(arguments, cell);
      if (kernel_.leave) kernel_.leave();
    });
  }

 private:
  // The state of a cell: the packed block of B and the current strip of A.
  struct Place {
    const MatmulArguments* arguments = nullptr;
    std::byte* packed_a = nullptr;
    std::byte* packed_b = nullptr;
    float* sums = nullptr;
    Range rows, cols;         // tiles of the current block
    int64_t depth_begin = 0;  // of the current block
    int64_t depth = 0;
    bool first = false, last = false;  // block of the depth
    const std::byte* a = nullptr;
    int64_t a_stride = 0;
    int64_t low_rank = 0;          // packed steps of P Q after the block's depth
    const std::byte* p = nullptr;  // strip of P
  };

  bool keeps_sums() const { return spec_.result != DType::f32 && blocks_.depth_block < spec_.size.depth; }

  void run_cell(const MatmulArguments& arguments, int64_t cell) const {
    Place place;
    place.arguments = &arguments;
    place.packed_a = arguments.scratch + cell * blocks_.cell_bytes();
    place.packed_b = place.packed_a + blocks_.a_strips * blocks_.a_bytes;
    place.sums = reinterpret_cast<float*>(place.packed_b + blocks_.b_bytes);
    const Range rows = piece(cell / blocks_.grid_cols, blocks_.cell_rows, blocks_.row_tiles);
    const Range cols = piece(cell % blocks_.grid_cols, blocks_.cell_cols, blocks_.col_tiles);
    for (int64_t row = rows.begin; row < rows.end; row += blocks_.row_block)
      for (int64_t col = cols.begin; col < cols.end; col += blocks_.col_block) {
        place.rows = {row, std::min(rows.end, row + blocks_.row_block)};
        place.cols = {col, std::min(cols.end, col + blocks_.col_block)};
        for (int64_t step = 0; step < spec_.size.depth; step += blocks_.depth_block) {
          place.depth_begin = step;
          place.depth = std::min(blocks_.depth_block, spec_.size.depth - step);
          place.first = step == 0;
          place.last = step + place.depth == spec_.size.depth;
          place.low_rank = place.last ? blocks_.low_rank : 0;
          run_block(place);
        }
      }
  }

  void run_block(Place& place) const {
    const int64_t step_bytes = tile_.cols * tile_.element_bytes, depth = packed_depth(place.depth);
    const int64_t strip = (depth + place.low_rank) * step_bytes;
    const int64_t first_col = place.cols.begin * tile_.cols;
    const int64_t cols = std::min(spec_.size.cols, place.cols.end * tile_.cols) - first_col;
    const PackCall pack{place.arguments->b,
                        spec_.rounds_b ? DType::f32 : spec_.operand,
                        b_stride_,
                        !spec_.b_transposed,
                        first_col,
                        cols,
                        place.depth_begin,
                        place.depth,
                        place.packed_b,
                        strip,
                        spec_.rounds_b ? spec_.operand : DType::f32};
    if (spec_.b_storage.dense())
      kernel_.pack_b(pack);
    else
      pack_coded(pack);
    if (place.low_rank > 0)
      kernel_.pack_b({place.arguments->q, spec_.operand, spec_.q_transposed ? spec_.low_rank : spec_.size.cols,
                      !spec_.q_transposed, first_col, cols, 0, spec_.low_rank, place.packed_b + depth * step_bytes,
                      strip});
    for (int64_t row = place.rows.begin; row < place.rows.end; ++row) {
      take_strip(place, row);
      for (int64_t step = 0; step < place.depth; step += blocks_.depth_step) run_row(place, row, step, strip);
    }
  }

  // Packs B from blocks of codes: decodes it strip by strip, some steps at a time, into a buffer in the L1 cache.
  void pack_coded(const PackCall& whole) const {
    constexpr int64_t kSteps = 64, kLanes = 32;
    alignas(64) float decoded[kSteps * kLanes];
    HR_CHECK(tile_.cols <= kLanes && kSteps % tile_.depth_unit == 0, "no buffer for strips of {}", tile_.cols);
    const CodedMatrix matrix(whole.from, spec_.b_storage, spec_.size.cols * spec_.size.depth);
    for (int64_t lane = 0; lane < whole.lanes; lane += tile_.cols)
      for (int64_t step = 0; step < whole.depth; step += kSteps) {
        PackCall piece = whole;
        piece.from = decoded;
        piece.lanes = std::min(tile_.cols, whole.lanes - lane);
        piece.depth = std::min(kSteps, whole.depth - step);
        piece.lane = piece.step = 0;
        piece.stride = whole.depth_major ? piece.lanes : piece.depth;
        piece.to += lane / tile_.cols * whole.strip_bytes + step * tile_.cols * tile_.element_bytes;
        const int64_t lines = whole.depth_major ? piece.depth : piece.lanes;
        const int64_t first_line = whole.depth_major ? whole.step + step : whole.lane + lane;
        const int64_t first = whole.depth_major ? whole.lane + lane : whole.step + step;
        for (int64_t i = 0; i < lines; ++i)
          matrix.read((first_line + i) * whole.stride + first, piece.stride, decoded + i * piece.stride);
        kernel_.pack_b(piece);
      }
  }

  // The share of the next strip of A that the tiles of a row prefetch.
  NearLines strip_below(const Place& place, int64_t row, const Range& cols, int64_t step) const {
    if (spec_.a_transposed || row + 1 >= place.rows.end) return {};
    const int64_t bytes = dtype_bytes(spec_.operand);
    const int64_t tiles = place.cols.end - place.cols.begin;
    const int64_t pieces = tiles * matmul_blocks::ceil_div(place.depth, blocks_.depth_step);
    const int64_t before = step / blocks_.depth_step * tiles - place.cols.begin;
    const int64_t rows = lanes(row + 1, tile_.rows, spec_.size.rows);
    const int64_t begin = rows * (before + cols.begin) / pieces, end = rows * (before + cols.end) / pieces;
    const int64_t offset = ((row + 1) * tile_.rows + begin) * a_stride_ + place.depth_begin;
    return {static_cast<const std::byte*>(place.arguments->a) + offset * bytes, a_stride_ * bytes, end - begin,
            matmul_blocks::ceil_div(place.depth * bytes, 64)};
  }

  // Provides the strip of A: in place if the kernel can read it so, else packed, together with the strips below it.
  // Packs the strip of P after it.
  void take_strip(Place& place, int64_t row) const {
    const int64_t valid = lanes(row, tile_.rows, spec_.size.rows);
    const int64_t strip = (row - place.rows.begin) % blocks_.a_strips;
    std::byte* const packed = place.packed_a + strip * blocks_.a_bytes;
    if (place.low_rank > 0) {
      std::byte* const p = packed + tile_.rows * blocks_.depth_block * tile_.element_bytes;
      kernel_.pack_a({place.arguments->p, spec_.operand, spec_.low_rank, false, row * tile_.rows, valid, 0,
                      spec_.low_rank, p, blocks_.a_bytes});
      place.p = p;
    }
    const bool whole = valid == tile_.rows && place.depth % tile_.depth_unit == 0;
    // Very long rows (such as a chunk's dlogits) are packed: reading in place would touch a page per row each time.
    constexpr int64_t kFarApart = int64_t{64} << 10;
    const bool near = a_stride_ * tile_.element_bytes < kFarApart;
    if (tile_.reads_a_in_place && !spec_.a_transposed && whole && near) {
      place.a = static_cast<const std::byte*>(place.arguments->a) +
                (row * tile_.rows * a_stride_ + place.depth_begin) * tile_.element_bytes;
      place.a_stride = a_stride_ * tile_.element_bytes;
      return;
    }
    if (strip == 0) {
      const int64_t first = row * tile_.rows;
      const int64_t end = std::min(place.rows.end, row + blocks_.a_strips) * tile_.rows;
      kernel_.pack_a({place.arguments->a, spec_.operand, a_stride_, spec_.a_transposed, first,
                      std::min(end, spec_.size.rows) - first, place.depth_begin, place.depth, packed, blocks_.a_bytes});
    }
    place.a = packed;
    place.a_stride = 0;
  }

  // A piece of the depth for a row of tiles. f32 sums of whole tiles are written directly to C.
  void run_row(const Place& place, int64_t row, int64_t step, int64_t strip) const {
    const bool direct = spec_.result == DType::f32 && lanes(row, tile_.rows, spec_.size.rows) == tile_.rows;
    const int64_t whole =
        direct ? std::clamp(spec_.size.cols / tile_.cols, place.cols.begin, place.cols.end) : place.cols.begin;
    if (whole > place.cols.begin) run_tiles(place, row, {place.cols.begin, whole}, step, strip, true);
    if (whole < place.cols.end) run_tiles(place, row, {whole, place.cols.end}, step, strip, false);
  }

  void run_tiles(const Place& place, int64_t row, const Range& cols, int64_t step, int64_t strip, bool direct) const {
    const int64_t depth = std::min(blocks_.depth_step, place.depth - step);
    const int64_t offset = row * tile_.rows * spec_.size.cols + cols.begin * tile_.cols;
    const bool whole = step + depth == place.depth;
    TileCall call;
    call.a = place.a + step * (place.a_stride ? 1 : tile_.rows) * tile_.element_bytes;
    call.a_stride = place.a_stride;
    call.b = place.packed_b + (cols.begin - place.cols.begin) * strip + step * tile_.cols * tile_.element_bytes;
    call.b_bytes = strip;
    call.tiles = cols.end - cols.begin;
    call.depth = packed_depth(depth);
    if (whole) {
      call.p = place.p;
      call.low_rank = place.low_rank;
    }
    if (direct) {
      call.out = static_cast<float*>(place.arguments->c) + offset;
      call.out_stride = spec_.size.cols;
      call.out_step = tile_.cols;
      const float* addend = spec_.addend ? static_cast<const float*>(place.arguments->addend) + offset : nullptr;
      call.init = place.first && step == 0 ? addend : call.out;
    } else {
      call.out = place.sums + place_of_sums(place, row, cols.begin) * tile_.rows * tile_.cols;
      call.out_stride = tile_.cols;
      call.out_step = sums_stay(place) ? tile_.rows * tile_.cols : 0;
      call.init = step > 0 || (keeps_sums() && !place.first) ? call.out : nullptr;
      if (step == 0 && continues(place)) {
        load_sums(place, row, cols, call.out);
        call.init = call.out;
      }
    }
    look_ahead(place, row, cols, step, direct, call);
    const bool finishes = whole && (direct ? place.last && spec_.bias : place.last || !keeps_sums());
    FinishCall finish;
    if (finishes) finish = finish_of(place, call, row, cols);
    if (finishes) call.finish = &finish;
    kernel_.multiply(call);
  }

  // f32 sums continue from C, or start with the addend; also at the edges, so that a row's bits do not depend on the
  // number of rows.
  bool continues(const Place& place) const { return spec_.result == DType::f32 && (!place.first || spec_.addend); }

  // The initial sums of f32 tiles at the edge; 0 outside C.
  void load_sums(const Place& place, int64_t row, const Range& cols, float* sums) const {
    const void* from = place.first ? place.arguments->addend : place.arguments->c;
    const int64_t rows = lanes(row, tile_.rows, spec_.size.rows);
    for (int64_t col = cols.begin; col < cols.end; ++col, sums += tile_.rows * tile_.cols) {
      const int64_t width = lanes(col, tile_.cols, spec_.size.cols);
      std::fill_n(sums, tile_.rows * tile_.cols, 0.0f);
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(static_cast<const float*>(from) + (row * tile_.rows + i) * spec_.size.cols + col * tile_.cols,
                    width, sums + i * tile_.cols);
    }
  }

  // Whether each tile needs its own sums. Sums that are finished at once share one buffer, which stays in the L1 cache.
  bool sums_stay(const Place& place) const {
    return keeps_sums() || place.depth > blocks_.depth_step || continues(place);
  }
  int64_t place_of_sums(const Place& place, int64_t row, int64_t col) const {
    if (!sums_stay(place)) return 0;
    const int64_t kept = keeps_sums() ? row - place.rows.begin : 0;
    return kept * blocks_.col_block + col - place.cols.begin;
  }

  // Prefetch hints for C. If sums go directly to C: the next tile, on the first piece of the depth only, as it is
  // cached later. Otherwise: this tile, when it is finished.
  void look_ahead(const Place& place, int64_t row, const Range& cols, int64_t step, bool direct, TileCall& call) const {
    call.ahead[0] = strip_below(place, row, cols, step);
    const bool whole = step + blocks_.depth_step >= place.depth;
    if (direct ? step > 0 : !whole || !place.last) return;
    const int64_t bytes = dtype_bytes(spec_.result);
    const int64_t col = cols.begin + (direct ? 1 : 0);
    const int64_t offset = (row * tile_.rows * spec_.size.cols + col * tile_.cols) * bytes;
    call.ahead[1] = {static_cast<const std::byte*>(place.arguments->c) + offset, spec_.size.cols * bytes,
                     lanes(row, tile_.rows, spec_.size.rows), matmul_blocks::ceil_div(tile_.cols * bytes, 64)};
    call.ahead_step = tile_.cols * bytes;
    if (!spec_.addend || place.arguments->addend == place.arguments->c || (direct && !place.first)) return;
    call.ahead[2] = call.ahead[1];
    call.ahead[2].at = static_cast<const std::byte*>(place.arguments->addend) + offset;
  }

  // Writes the sums of tiles to C. f32 tiles at the edge are written after each block of the depth, over the previous
  // result.
  FinishCall finish_of(const Place& place, const TileCall& tiles, int64_t row, const Range& cols) const {
    const int64_t first_col = cols.begin * tile_.cols;
    const int64_t bytes = (row * tile_.rows * spec_.size.cols + first_col) * dtype_bytes(spec_.result);
    std::byte* c = static_cast<std::byte*>(place.arguments->c) + bytes;
    const std::byte* addend = nullptr;  // none for f32 sums, which start with it
    if (spec_.addend && spec_.result != DType::f32)
      addend = static_cast<const std::byte*>(place.arguments->addend) + bytes;
    const float* bias = spec_.bias && place.last ? place.arguments->bias + first_col : nullptr;
    return {tiles.out,
            tiles.out_stride,
            c,
            addend,
            spec_.size.cols,
            spec_.result,
            bias,
            lanes(row, tile_.rows, spec_.size.rows),
            std::min(spec_.size.cols, cols.end * tile_.cols) - first_col};
  }

  int64_t packed_depth(int64_t depth) const { return align_up(depth, tile_.depth_unit); }
  static int64_t lanes(int64_t tile, int64_t size, int64_t count) { return std::min(size, count - tile * size); }

  MatmulSpec spec_;
  TileKernel kernel_;
  TileTraits tile_;
  MatmulBlocks blocks_;
  int64_t a_stride_, b_stride_;  // elements between rows in memory
};

}  // namespace

void run_blocked_matmul(const MatmulSpec& spec, const TileKernel& kernel, int threads,
                        const MatmulArguments& arguments) {
  BlockedMatmul(spec, kernel, cut_matmul(spec, kernel.traits, threads)).run(arguments);
}

MatmulOffer make_blocked_matmul(const MatmulSpec& spec, const TileKernel& kernel, const DeviceFacts& facts,
                                int64_t booked) {
  const MatmulBlocks blocks = cut_matmul(spec, kernel.traits, facts.threads);
  if (blocks.total_bytes() > booked)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", blocks.total_bytes(), booked)};
  return {std::make_unique<BlockedMatmul>(spec, kernel, blocks), {}};
}

}  // namespace headroom
