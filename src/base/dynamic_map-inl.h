// The dynamic quantile maps (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", section 2.3): a
// magnitude in [0, 1] lies in one of seven decades, each with twice as many steps as the one below; the first value is
// 0 and the last 1. In a block of 256 elements a code means its value times the block's largest magnitude.
//
// Magnitudes are numbered by rank. Signed states have codes 127 - rank and 127 + rank, others their rank. Users include
// this file inside their namespace and define HR_MAP as the attributes of its functions: plain C++17, for device code.

// The largest rank; its magnitude is 1. Negative numbers stop one rank below it.
HR_MAP int top_rank(bool is_signed) { return is_signed ? 128 : 255; }

// The magnitude of a rank from 0 to top_rank(): in a decade, the middle of its step.
HR_MAP double magnitude(bool is_signed, int rank) {
  if (rank == 0) return 0;
  if (rank >= top_rank(is_signed)) return 1;
  int steps = is_signed ? 1 : 2, first = 1;
  double scale = 1e-6;
  for (; rank >= first + steps; steps *= 2) {
    first += steps;
    scale *= 10;
  }
  return scale * (0.1 + 0.9 * (rank - first + 0.5) / steps);
}

// The value of a code.
HR_MAP double value_of_code(bool is_signed, int code) {
  if (!is_signed) return magnitude(false, code);
  return code < 127 ? -magnitude(true, 127 - code) : magnitude(true, code - 127);
}

HR_MAP int code_of_rank(bool is_signed, bool negative, int rank) {
  if (!is_signed) return rank;
  return negative ? 127 - (rank < 127 ? rank : 127) : 127 + rank;
}
