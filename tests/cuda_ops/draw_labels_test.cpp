// Labels drawn on the GPU are those of the reference.
#include "cuda_ops/random.h"
#include "ops/draw_labels/shape.h"

namespace headroom::draw_labels_on_cuda {
namespace {

using namespace op_test;

struct DrawCase {
  DType dtype = DType::f32;
  bool wide_weight = false, shift = true, bias = false;
  double softcap = 0;
  int64_t vocabulary = 131, trip = 0;
};

Tensor labels_for(int64_t batch, int64_t sequence) {
  Tensor labels(DType::i32, {batch, sequence});
  for (int64_t i = 0; i < labels.count(); ++i) labels.set(i, i % 4 == 3 ? -100 : static_cast<double>(i));
  return labels;
}

void expect_draws_match(const DrawCase& c, double drawn_labels) {
  Tensor hyper = hyper_of(11, 2);
  hyper.set(kDrawnLabels, drawn_labels);
  std::vector<Tensor> in{Tensor::random(c.dtype, {2, 6, 8}, 1, 2.0),
                         Tensor::random(c.wide_weight ? DType::f32 : c.dtype, {c.vocabulary, 8}, 2), labels_for(2, 6),
                         hyper};
  if (c.bias) in.push_back(Tensor::random(DType::f32, {c.vocabulary}, 4));
  const Attrs attrs{{"layout", std::string("out_in")},
                    {"shift", int64_t{c.shift}},
                    {"bias", int64_t{c.bias}},
                    {"softcap", c.softcap},
                    {"chunk", int64_t{5}},
                    {"interval", int64_t{0}}};
  RunOptions options;
  options.trip = c.trip;
  const RunResult found = run_cuda_op("draw_labels", in, attrs, options);
  options.only = "reference";
  const RunResult expected = run_op("draw_labels", in, attrs, options);
  expect_same_bytes(found.outputs[0], expected.outputs[0]);
  EXPECT_EQ(found.outputs[0].same_bytes(in[DrawInputs::labels]), drawn_labels == 0);
}

TEST(CudaDrawLabels, AgreesWithTheReference) {
  set_threads(1);
  for (const DType dtype : kFloats)
    for (const double drawn_labels : {0.0, 12.0}) {
      DrawCase c;
      c.dtype = dtype;
      expect_draws_match(c, drawn_labels);
      c.wide_weight = true, c.trip = 3;
      expect_draws_match(c, drawn_labels);
      c.shift = false, c.bias = true, c.softcap = 1.5;
      expect_draws_match(c, drawn_labels);
      c.vocabulary = 1003;
      expect_draws_match(c, drawn_labels);
    }
}

}  // namespace
}  // namespace headroom::draw_labels_on_cuda
