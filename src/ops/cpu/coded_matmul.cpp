#include "ops/cpu/coded_matmul.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/threads.h"
#include "ops/cast/convert.h"
#include "ops/cpu/coded_matrix.h"

namespace headroom {
namespace {

class CodedMatmul final : public Matmul {
 public:
  // `last`: the product for the columns after the last whole piece, null if there are none. `more`: P Q, added to all
  // of C, null if there is none.
  CodedMatmul(const MatmulSpec& spec, std::unique_ptr<Matmul> whole, std::unique_ptr<Matmul> last,
              std::unique_ptr<Matmul> more)
      : spec_(spec),
        whole_(std::move(whole)),
        last_(std::move(last)),
        more_(std::move(more)),
        columns_(decoded_columns(spec)) {}

  int64_t scratch_bytes() const override {
    int64_t inner = 0;
    for (const auto* matmul : {whole_.get(), last_.get(), more_.get()})
      if (matmul) inner = std::max(inner, matmul->scratch_bytes());
    return decoded_bytes(spec_) + inner;
  }

  void run(const MatmulArguments& arguments) const override {
    MatmulArguments piece = arguments;
    piece.b = arguments.scratch;
    piece.c = arguments.scratch + b_bytes();
    piece.scratch += decoded_bytes(spec_);
    if (arguments.addend) piece.addend = piece.c;
    for (int64_t col = 0; col < spec_.size.cols; col += columns_) {
      const int64_t count = std::min(columns_, spec_.size.cols - col);
      const Block whole{spec_.size.cols, col}, made{count, 0};
      decode(arguments.b, col, count, arguments.scratch);
      if (arguments.addend) copy(arguments.addend, whole, piece.c, made, count);
      if (arguments.bias) piece.bias = arguments.bias + col;
      (count == columns_ ? *whole_ : *last_).run(piece);
      copy(piece.c, made, arguments.c, whole, count);
    }
    if (more_) more_->run({arguments.p, arguments.q, arguments.c, nullptr, arguments.c, piece.scratch});
  }

 private:
  // Columns from `first` of a matrix with `row` columns.
  struct Block {
    int64_t row = 0;
    int64_t first = 0;
  };

  int64_t b_bytes() const { return align_up(spec_.size.depth * columns_ * dtype_bytes(spec_.operand), 64); }

  // Copies `count` columns of every row of C.
  void copy(const void* from, const Block& source, void* to, const Block& target, int64_t count) const {
    const int64_t width = dtype_bytes(spec_.result);
    parallel_for(spec_.size.rows, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row)
        std::memcpy(static_cast<std::byte*>(to) + (row * target.row + target.first) * width,
                    static_cast<const std::byte*>(from) + (row * source.row + source.first) * width,
                    static_cast<size_t>(count * width));
    });
  }

  // Decodes columns col .. col + count of B, in B's layout.
  void decode(const void* codes, int64_t col, int64_t count, std::byte* to) const {
    const auto [rows, cols, depth] = spec_.size;
    const CodedMatrix matrix(codes, spec_.b_storage, cols * depth);
    const int64_t lines = spec_.b_transposed ? count : depth, length = spec_.b_transposed ? depth : count;
    const int64_t stride = spec_.b_transposed ? depth : cols, first = spec_.b_transposed ? col * depth : col;
    parallel_for(lines, 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line)
        decode_line(matrix, first + line * stride, length, to + line * length * dtype_bytes(spec_.operand));
    });
  }

  void decode_line(const CodedMatrix& matrix, int64_t first, int64_t count, std::byte* to) const {
    if (spec_.operand == DType::f32) return matrix.read(first, count, reinterpret_cast<float*>(to));
    constexpr int64_t kPiece = 512;
    alignas(64) float values[kPiece];
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t piece = std::min(kPiece, count - at);
      matrix.read(first + at, piece, values);
      convert_floats(values, DType::f32, to + at * dtype_bytes(DType::bf16), DType::bf16, piece);
    }
  }

  MatmulSpec spec_;
  std::unique_ptr<Matmul> whole_, last_, more_;
  int64_t columns_;
};

// P Q as a product that is added to C.
MatmulSpec low_rank_part(const MatmulSpec& spec) {
  MatmulSpec more = spec;
  more.size.depth = spec.low_rank;
  more.b_transposed = spec.q_transposed;
  more.b_storage = {};
  more.rounds_b = more.bias = false;
  more.addend = true;
  more.low_rank = 0;
  return more;
}

}  // namespace

MatmulOffer make_coded_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked, MatmulMaker make) {
  const int64_t left = booked - decoded_bytes(spec), columns = decoded_columns(spec);
  if (left < 0)
    return {nullptr, fmt::format("{} bytes of decoded columns, {} are booked", decoded_bytes(spec), booked)};
  MatmulSpec plain = spec;
  plain.b_storage = {};
  plain.rounds_b = false;
  plain.low_rank = 0;
  std::array<MatmulOffer, 3> parts;
  const std::array<int64_t, 2> counts{columns, spec.size.cols % columns};
  for (size_t i = 0; i < counts.size(); ++i) {
    plain.size.cols = counts[i];
    if (counts[i] > 0 && !(parts[i] = make(plain, facts, left)).matmul) return std::move(parts[i]);
  }
  if (spec.low_rank > 0 && !(parts[2] = make(low_rank_part(spec), facts, left)).matmul) return std::move(parts[2]);
  return {std::make_unique<CodedMatmul>(spec, std::move(parts[0].matmul), std::move(parts[1].matmul),
                                        std::move(parts[2].matmul)),
          {}};
}

}  // namespace headroom
