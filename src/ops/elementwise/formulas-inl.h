// What elementwise ops compute: one formula each, for reference kernels (f64), vectors and GPUs.
//
// Included into the namespace of each arithmetic M, after #define HR_FORMULA with the attributes of its functions.
// There is no include guard, as vectors have a namespace for each instruction set. M has the operations that formulas
// use; each M chooses how it associates three factors and how it approximates exp, erfc and tanh. F::at(m, constant,
// inputs, outputs) takes one element of each operand, or a vector of elements. The M of a formula that draws also knows
// the random bits of these elements.

template <class V>
struct ValueAndSlope {
  V value;
  V slope;
};

// x s with s = sigmoid(x); the slope is s (1 + x (1 - s)).
struct Silu {
  template <class M, class V>
  HR_FORMULA static ValueAndSlope<V> at(M m, V x) {
    const V one = m.set(1), s = m.sigmoid(x);
    return {m.mul(x, s), m.mul(s, m.mul_add(x, m.sub(one, s), one))};
  }
};

// x Phi(x); the slope is Phi(x) + x phi(x).
struct GeluExact {
  template <class M, class V>
  HR_FORMULA static ValueAndSlope<V> at(M m, V x) {
    const auto n = m.normal(x);
    return {m.mul(x, n.integral), m.mul_add(x, n.density, n.integral)};
  }
};

// x (1 + tanh(u)) / 2 = x s with s = sigmoid(2u) and 2u = 2 sqrt(2/pi) (x + 0.044715 x^3); the slope is s + x (2u)' s
// (1 - s). If |x| > 10, the last product is below 1e-30, but its factors may overflow.
struct GeluByTanh {
  template <class M, class V>
  HR_FORMULA static ValueAndSlope<V> at(M m, V x) {
    const V root = m.set(1.5957691216057308);
    const V s = m.sigmoid(m.mul(m.mul(root, x), m.one_plus_square(0.044715, x)));
    const V rise = m.mul(root, m.one_plus_square(0.134145, x));
    return {m.mul(x, s), m.add(s, m.zero_beyond(10, x, m.times_bend(m.mul(x, rise), s)))};
  }
};

// y = f(x)
template <class F>
struct Activated {
  static constexpr int kInputs = 1, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C&, const V* in, V* out) {
    out[0] = F::at(m, in[0]).value;
  }
};

// (x, dy) -> dx = dy f'(x)
template <class F>
struct ActivatedGrad {
  static constexpr int kInputs = 2, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C&, const V* in, V* out) {
    out[0] = m.mul(in[1], F::at(m, in[0]).slope);
  }
};

// (gate, up) -> h = f(gate) up
template <class F>
struct Gated {
  static constexpr int kInputs = 2, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C&, const V* in, V* out) {
    out[0] = m.mul(F::at(m, in[0]).value, in[1]);
  }
};

// (gate, up, dh) -> dgate = dh up f'(gate), dup = dh f(gate)
template <class F>
struct GatedGrad {
  static constexpr int kInputs = 3, kOutputs = 2;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C&, const V* in, V* out) {
    const auto f = F::at(m, in[0]);
    out[0] = m.mul(m.mul(in[2], in[1]), f.slope);
    out[1] = m.mul(in[2], f.value);
  }
};

// y = c tanh(x / c)
struct Softcap {
  static constexpr int kInputs = 1, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C& cap, const V* in, V* out) {
    out[0] = m.mul(m.tanh(m.quotient(in[0], cap)), m.set(cap.value));
  }
};

// (y, dy) -> dx = dy (1 - (y / c)^2)
struct SoftcapGrad {
  static constexpr int kInputs = 2, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C& cap, const V* in, V* out) {
    const V part = m.quotient(in[0], cap);
    out[0] = m.mul(in[1], m.neg_mul_add(part, part, m.set(1)));
  }
};

// y = c x
struct Scale {
  static constexpr int kInputs = 1, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C& factor, const V* in, V* out) {
    out[0] = m.mul(in[0], m.set(factor.value));
  }
};

// y = x, in y's type
struct Copy {
  static constexpr int kInputs = 1, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M, const C&, const V* in, V* out) {
    out[0] = in[0];
  }
};

// y = c x if the element is kept, else 0; in y's type
struct Drop {
  static constexpr int kInputs = 1, kOutputs = 1;
  template <class M, class C, class V>
  HR_FORMULA static void at(M m, const C& factor, const V* in, V* out) {
    out[0] = m.unless_dropped(m.mul(in[0], m.set(factor.value)));
  }
};

// Whether the results of F may have another type than its operands.
template <class F>
constexpr bool kConverts = false;
#define HR_CONVERTS(number, type) \
  template <>                     \
  constexpr bool kConverts<type> = true;
HR_CONVERTING_FORMULAS(HR_CONVERTS)
#undef HR_CONVERTS

// Whether F needs the random bits of its elements.
template <class F>
constexpr bool kDraws = false;
template <>
constexpr bool kDraws<Drop> = true;
