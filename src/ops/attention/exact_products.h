// Products of small f32 matrices on AMX tiles, each operand in three bf16 parts (ops/cpu/amx_split.h).
//
// A packed operand consists of blocks of kExactBlock bytes: 32 rows of A, or columns of B, times 32 steps of the depth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

inline constexpr int64_t kExactBlock = 3 * 2048;

// Where the blocks of a packed operand are: the bytes between neighbouring strips (32 rows of A or columns of B) and
// between neighbouring steps (32 of the depth).
struct ExactBlocks {
  std::byte* at = nullptr;
  int64_t strip = 0;
  int64_t step = 0;

  // The same blocks from a later one.
  ExactBlocks from(int64_t strips, int64_t steps) const { return {at + strips * strip + steps * step, strip, step}; }
};

// Bytes of a packed matrix; rows and columns are multiples of 32.
inline int64_t exact_bytes(int64_t rows, int64_t columns) { return rows / 32 * (columns / 32) * kExactBlock; }

// An f32 matrix in memory; rows and columns are multiples of 32, `stride` is the number of elements between rows.
struct ExactSource {
  const float* from = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Rows of memory as rows of A.
void pack_exact_left(const ExactSource& source, const ExactBlocks& to);
// Columns of memory as rows of A.
void pack_exact_left_turned(const ExactSource& source, const ExactBlocks& to);
// Columns of memory as columns of B.
void pack_exact_right(const ExactSource& source, const ExactBlocks& to);
// Rows of memory as columns of B.
void pack_exact_right_turned(const ExactSource& source, const ExactBlocks& to);

// c[rows x columns] [+]= a[rows x depth] b[depth x columns]; sizes are multiples of 32, c_row is in elements.
struct ExactProduct {
  ExactBlocks a;
  ExactBlocks b;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool add = false;
};
// Call only between enter_exact() and leave_exact() on the same thread.
void multiply_exact(const ExactProduct& product);
void enter_exact();
void leave_exact();
// Calls enter_exact() now and leave_exact() at the end, on the thread that creates it.
class ExactSession {
 public:
  ExactSession() { enter_exact(); }
  ~ExactSession() { leave_exact(); }
  ExactSession(const ExactSession&) = delete;
  ExactSession& operator=(const ExactSession&) = delete;
};

// Whether the processor has AMX and the system lets this process use it (asks once). Thread-safe.
bool exact_products_usable();

}  // namespace headroom
