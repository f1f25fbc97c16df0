// What elementwise updates compute: one formula each, for reference kernels (f64), vectors and GPUs.
//
// Included into the namespace of each arithmetic M, after #define HR_FORMULA with the attributes of its functions.
// There is no include guard, as vectors have a namespace for each instruction set. A formula has
//   kStates: the number of states of a weight;
//   kSigned: which states may be negative, one bit each, the first in the lowest bit;
//   factors(step, f): the factors in an element's update, computed once per call in f64 and rounded to M's type;
//   at(m, f, w, g, states): an element's new weight from its weight and its (clipped) gradient; updates its states.
// `step.number` is in the order of the op's row in op.cpp, `step.own` in the order of the optimizer's scalars.

// Adam (Kingma and Ba 2015) with torch.optim's order of operations. Decoupled: AdamW (Loshchilov and Hutter 2019);
// otherwise weight decay is added to the gradient.
template <bool kDecoupled>
struct AdamUpdate {
  static constexpr int kStates = 2;
  static constexpr unsigned kSigned = 1;
  enum { kKeep, kBeta1, kNew1, kBeta2, kNew2, kStepSize, kSqrtCorrection, kEps };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kKeep] = static_cast<Real>(kDecoupled ? 1 - step.lr * step.decay : step.decay);
    f[kBeta1] = static_cast<Real>(step.number[0]);
    f[kNew1] = static_cast<Real>(1 - step.number[0]);
    f[kBeta2] = static_cast<Real>(step.number[1]);
    f[kNew2] = static_cast<Real>(1 - step.number[1]);
    f[kStepSize] = static_cast<Real>(step.lr / step.own[0]);
    f[kSqrtCorrection] = static_cast<Real>(step.own[1]);
    f[kEps] = static_cast<Real>(step.number[2]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    if (!kDecoupled) g = m.mul_add(m.set(f[kKeep]), w, g);
    states[0] = m.mul_add(states[0], m.set(f[kBeta1]), m.mul(g, m.set(f[kNew1])));
    states[1] = m.mul_add(states[1], m.set(f[kBeta2]), m.mul(m.mul(g, g), m.set(f[kNew2])));
    const V root = m.div(m.sqrt(states[1]), m.set(f[kSqrtCorrection]));
    const V move = m.div(states[0], m.add(root, m.set(f[kEps])));
    return m.neg_mul_add(m.set(f[kStepSize]), move, kDecoupled ? m.mul(w, m.set(f[kKeep])) : w);
  }
};

// w' = w - lr (gradient's share g + mean's share m') / (root's share sqrt(v') + floor), with m and v the means of g and
// its square. Shares and floor are the step's own scalars, so that relatives of Adam differ by them alone. Weight decay
// as for Adam.
template <bool kDecoupled>
struct MomentsUpdate {
  static constexpr int kStates = 2;
  static constexpr unsigned kSigned = 1;
  enum { kKeep, kNew1, kBeta2, kNew2, kGradientStep, kMeanStep, kRootShare, kFloor };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kKeep] = static_cast<Real>(kDecoupled ? 1 - step.lr * step.decay : step.decay);
    f[kNew1] = static_cast<Real>(1 - step.number[0]);
    f[kBeta2] = static_cast<Real>(step.number[1]);
    f[kNew2] = static_cast<Real>(1 - step.number[1]);
    f[kGradientStep] = static_cast<Real>(step.lr * step.own[0]);
    f[kMeanStep] = static_cast<Real>(step.lr * step.own[1]);
    f[kRootShare] = static_cast<Real>(step.own[2]);
    f[kFloor] = static_cast<Real>(step.own[3]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    if (!kDecoupled) g = m.mul_add(m.set(f[kKeep]), w, g);
    states[0] = m.mul_add(m.set(f[kNew1]), g, m.neg_mul_add(m.set(f[kNew1]), states[0], states[0]));
    states[1] = m.mul_add(states[1], m.set(f[kBeta2]), m.mul(m.mul(g, g), m.set(f[kNew2])));
    const V root = m.mul_add(m.set(f[kRootShare]), m.sqrt(states[1]), m.set(f[kFloor]));
    const V move = m.mul_add(m.set(f[kGradientStep]), g, m.mul(m.set(f[kMeanStep]), states[0]));
    return m.neg_mul_add(m.set(1), m.div(move, root), kDecoupled ? m.mul(w, m.set(f[kKeep])) : w);
  }
};

// d = g + decay w; w' = w - lr d
struct SgdUpdate {
  static constexpr int kStates = 0;
  static constexpr unsigned kSigned = 0;
  enum { kDecay, kLr };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kDecay] = static_cast<Real>(step.decay);
    f[kLr] = static_cast<Real>(step.lr);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V*) {
    return m.neg_mul_add(m.set(f[kLr]), m.mul_add(m.set(f[kDecay]), w, g), w);
  }
};

// buffer' = momentum buffer + d; w' = w - lr buffer' or, with Nesterov momentum, w - lr (d + momentum buffer')
// (Sutskever et al. 2013, in the form of torch.optim.SGD).
template <bool kNesterov>
struct MomentumUpdate {
  static constexpr int kStates = 1;
  static constexpr unsigned kSigned = 1;
  enum { kDecay, kLr, kMomentum };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kDecay] = static_cast<Real>(step.decay);
    f[kLr] = static_cast<Real>(step.lr);
    f[kMomentum] = static_cast<Real>(step.number[0]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    const V d = m.mul_add(m.set(f[kDecay]), w, g), momentum = m.set(f[kMomentum]);
    states[0] = m.mul_add(states[0], momentum, d);
    return m.neg_mul_add(m.set(f[kLr]), kNesterov ? m.mul_add(states[0], momentum, d) : states[0], w);
  }
};

// v' = alpha v + (1 - alpha) d^2; w' = w - lr d / (sqrt(v') + eps), as torch.optim.RMSprop. Centered (bit 1 of
// kVariant): the square of the mean gradient is subtracted from v'. With momentum (bit 0): the steps are summed in a
// buffer.
template <int kVariant>
struct RmspropUpdate {
  static constexpr bool kCentered = kVariant / 2 == 1, kMoving = kVariant % 2 == 1;
  static constexpr int kStates = 1 + kVariant / 2 + kVariant % 2;
  static constexpr unsigned kSigned = 6;
  enum { kDecay, kLr, kAlpha, kNew, kEps, kMomentum };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kDecay] = static_cast<Real>(step.decay);
    f[kLr] = static_cast<Real>(step.lr);
    f[kAlpha] = static_cast<Real>(step.number[0]);
    f[kNew] = static_cast<Real>(1 - step.number[0]);
    f[kEps] = static_cast<Real>(step.number[1]);
    f[kMomentum] = static_cast<Real>(step.number[2]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    const V d = m.mul_add(m.set(f[kDecay]), w, g), alpha = m.set(f[kAlpha]), fresh = m.set(f[kNew]);
    states[0] = m.mul_add(states[0], alpha, m.mul(m.mul(d, d), fresh));
    V spread = states[0];
    if constexpr (kCentered) {
      states[1] = m.mul_add(states[1], alpha, m.mul(d, fresh));
      spread = m.neg_mul_add(states[1], states[1], spread);
    }
    V move = m.div(d, m.add(m.sqrt(spread), m.set(f[kEps])));
    if constexpr (kMoving) move = states[kStates - 1] = m.mul_add(states[kStates - 1], m.set(f[kMomentum]), move);
    return m.neg_mul_add(m.set(f[kLr]), move, w);
  }
};

// s' = s + d^2; w' = w - lr factor d / (sqrt(s') + eps) (Duchi et al. 2011), with `factor` the step's own scalar.
struct AdagradUpdate {
  static constexpr int kStates = 1;
  static constexpr unsigned kSigned = 0;
  enum { kDecay, kLr, kEps };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kDecay] = static_cast<Real>(step.decay);
    f[kLr] = static_cast<Real>(step.lr * step.own[0]);
    f[kEps] = static_cast<Real>(step.number[0]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    const V d = m.mul_add(m.set(f[kDecay]), w, g);
    states[0] = m.mul_add(d, d, states[0]);
    return m.neg_mul_add(m.set(f[kLr]), m.div(d, m.add(m.sqrt(states[0]), m.set(f[kEps]))), w);
  }
};

// w' = (1 - lr decay) w - lr sign(beta1 e + (1 - beta1) g); e' = beta2 e + (1 - beta2) g (Chen et al. 2023).
struct LionUpdate {
  static constexpr int kStates = 1;
  static constexpr unsigned kSigned = 1;
  enum { kKeep, kLr, kBeta1, kNew1, kBeta2, kNew2 };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kKeep] = static_cast<Real>(1 - step.lr * step.decay);
    f[kLr] = static_cast<Real>(step.lr);
    f[kBeta1] = static_cast<Real>(step.number[0]);
    f[kNew1] = static_cast<Real>(1 - step.number[0]);
    f[kBeta2] = static_cast<Real>(step.number[1]);
    f[kNew2] = static_cast<Real>(1 - step.number[1]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    const V move = m.sign(m.mul_add(states[0], m.set(f[kBeta1]), m.mul(g, m.set(f[kNew1]))));
    states[0] = m.mul_add(states[0], m.set(f[kBeta2]), m.mul(g, m.set(f[kNew2])));
    return m.neg_mul_add(m.set(f[kLr]), move, m.mul(w, m.set(f[kKeep])));
  }
};

// Sophia-G (Liu et al. 2023, algorithm 3). A step: m' = beta1 m + (1 - beta1) g; w' = (1 - lr decay) w - lr m' / (rho h
// + 1e-15), the quotient within [-1, 1]. A pass that estimates the curvature, whose g is the mean gradient for B drawn
// labels (the Gauss-Newton-Bartlett estimator): h' = beta2 h + (1 - beta2) B g^2, and nothing else changes.
struct SophiaUpdate {
  static constexpr int kStates = 2;
  static constexpr unsigned kSigned = 1;
  enum { kEstimates, kKeep, kLr, kBeta1, kNew1, kBeta2, kNew2, kRho };

  template <class Real>
  HR_FORMULA static void factors(const UpdateStep& step, Real* f) {
    f[kEstimates] = static_cast<Real>(step.drawn > 0 ? 1 : 0);
    f[kKeep] = static_cast<Real>(1 - step.lr * step.decay);
    f[kLr] = static_cast<Real>(step.lr);
    f[kBeta1] = static_cast<Real>(step.number[0]);
    f[kNew1] = static_cast<Real>(1 - step.number[0]);
    f[kBeta2] = static_cast<Real>(step.number[1]);
    f[kNew2] = static_cast<Real>((1 - step.number[1]) * step.drawn);
    f[kRho] = static_cast<Real>(step.number[2]);
  }

  template <class M, class F, class V>
  HR_FORMULA static V at(M m, const F& f, V w, V g, V* states) {
    if (f[kEstimates] > 0) {
      states[1] = m.mul_add(states[1], m.set(f[kBeta2]), m.mul(m.mul(g, g), m.set(f[kNew2])));
      return w;
    }
    states[0] = m.mul_add(states[0], m.set(f[kBeta1]), m.mul(g, m.set(f[kNew1])));
    const V curvature = m.mul_add(m.set(f[kRho]), states[1], m.set(1e-15f));
    const V move = m.limit(m.div(states[0], curvature));
    return m.neg_mul_add(m.set(f[kLr]), move, m.mul(w, m.set(f[kKeep])));
  }
};
