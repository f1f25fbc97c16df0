// Seconds of calls that are remembered are those of the call, in whatever it differs from the ones before.
#include "cost/call_costs.h"

#include <gtest/gtest.h>

#include "cost/predict.h"
#include "ops/registry.h"

namespace headroom {
namespace {

struct Product {
  ConcreteType x{DType::f32, {64, 96}}, weight{DType::f32, {32, 96}}, y{DType::f32, {64, 32}};
  Attrs attrs{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
};

std::vector<Product> different_products() {
  std::vector<Product> out(6);
  out[1].x.dims = {128, 96}, out[1].y.dims = {128, 32};
  out[2].attrs.set("multiply", std::string("bf16"));
  out[3].attrs.set("residual", int64_t{1});
  out[4].weight.dtype = DType::bf16;
  out[5].x.dtype = out[5].weight.dtype = out[5].y.dtype = DType::bf16;
  return out;
}

TEST(CallCosts, AreThoseOfTheCall) {
  for (const char* name : {"cpu-avx512", "H100-80GB"}) {
    const Profile profile = load_profile(name);
    CallCosts costs(profile);
    for (const char* round : {"computed", "remembered"})
      for (const Product& product : different_products()) {
        const ConcreteType in[] = {product.x, product.weight}, out[] = {product.y};
        const OpCall call{in, out, product.attrs};
        EXPECT_EQ(costs.seconds(find_op("linear"), call), predict_call(find_op("linear"), call, profile)) << round;
      }
  }
}

TEST(CallCosts, OpsOfEqualShapesAreToldApart) {
  const Profile profile = load_profile("cpu-avx512");
  CallCosts costs(profile);
  const ConcreteType square{DType::f32, {256, 256}}, in[] = {square, square}, out[] = {square};
  const Attrs attrs{{"layout", "out_in"}};
  const OpCall call{in, out, attrs};
  for (int round = 0; round < 2; ++round)
    for (const char* op : {"linear", "linear_dx", "add"})
      EXPECT_EQ(costs.seconds(find_op(op), call), predict_call(find_op(op), call, profile)) << op;
}

}  // namespace
}  // namespace headroom
