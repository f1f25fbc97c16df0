// Ops that call the host or only move bytes.
#include <algorithm>

#include "stream_support.h"

namespace headroom::op_test {
namespace {

// Returns batches with recognisable numbers and acts as rank 1 of 3, whose other ranks hold `others`.
class FakeHost final : public HostPort {
 public:
  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                  int64_t seq) override {
    ASSERT_EQ(static_cast<int64_t>(ids.size()), batch * seq);
    ASSERT_EQ(ids.size(), labels.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(100 * trip + static_cast<int64_t>(i));
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = ids[i] + 1;
  }
  void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) override {
    ASSERT_EQ(static_cast<int64_t>(types.size()), batch * seq);
    for (int32_t& type : types) type = static_cast<int32_t>(trip);
  }
  void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) override {
    ASSERT_EQ(static_cast<int64_t>(lengths.size()), batch);
    for (int32_t& length : lengths) length = static_cast<int32_t>(seq - trip);
  }
  void all_gather(std::span<const std::byte> local, std::span<std::byte> full) override {
    for (size_t at = 0; at < full.size(); at += local.size())
      std::copy_n(local.begin(), std::min(local.size(), full.size() - at), full.begin() + static_cast<int64_t>(at));
  }
  void reduce_scatter(std::span<const float> full, std::span<float> local) override {
    for (size_t i = 0; i < local.size(); ++i)
      local[i] = local.size() + i < full.size() ? 3 * full[local.size() + i] : 0.0f;
  }
  void all_reduce(std::span<float> values) override {
    for (float& value : values) value *= 3;
  }
  void all_reduce_f64(std::span<double> values) override {
    for (double& value : values) value *= 3;
  }
};

TEST(Host, NextBatch) {
  FakeHost host;
  const Attrs attrs{{"batch", int64_t{2}}, {"seq", int64_t{3}}};
  const RunResult found = run_op("next_batch", {}, attrs, {.only = {}, .trip = 4, .host = &host});
  EXPECT_EQ(values(found.outputs[0]), (Vector{400, 401, 402, 403, 404, 405}));
  EXPECT_EQ(values(found.outputs[1]), (Vector{401, 402, 403, 404, 405, 406}));
  EXPECT_THROW(run_op("next_batch", {}, attrs), InternalError);
}

TEST(Host, NextBatchWithTypesLengthsAndSegments) {
  FakeHost host;
  Attrs attrs{{"batch", int64_t{2}}, {"seq", int64_t{3}}, {"lengths", int64_t{1}}};
  EXPECT_EQ(values(run_op("next_batch", {}, attrs, {.only = {}, .trip = 1, .host = &host}).outputs.at(2)),
            (Vector{2, 2}));
  attrs.set("types", int64_t{1}).set("segments", int64_t{1});
  const RunResult found = run_op("next_batch", {}, attrs, {.only = {}, .trip = 1, .host = &host});
  ASSERT_EQ(found.outputs.size(), 5u);
  EXPECT_EQ(values(found.outputs[2]), (Vector{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(values(found.outputs[3]), (Vector{2, 2}));
  EXPECT_EQ(values(found.outputs[4]), (Vector{0, 0, 0, 0, 0, 0}));
  attrs.set("types", int64_t{2});
  EXPECT_THROW(run_op("next_batch", {}, attrs, {.only = {}, .host = &host}), InternalError);
}

TEST(Host, AllocateAndStageLeaveMemoryAlone) {
  const Tensor found = run_op("allocate", {}, {{"dtype", "f32"}, {"dims", "3,5"}}).outputs[0];
  EXPECT_EQ(found.type().dims, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(found.as<uint32_t>()[14], 0xffffffffu);
  EXPECT_TRUE(run_op("host_stage", {}, {{"bytes", int64_t{100}}}).outputs.empty());
  const Attrs attrs{{"bytes", int64_t{1000}}};
  EXPECT_EQ(scratch_bytes(find_op("host_stage"), {{}, {}, attrs}, {}), 1000);
}

TEST(ScratchUsers, HaveARuleOrAStage) {
  const DeviceFacts facts;
  ScratchUsers users(facts);
  for (const char* looked_up : {"first", "again"}) {
    EXPECT_TRUE(users.contain(find_op("host_stage"))) << looked_up;
    EXPECT_TRUE(users.contain(find_op("linear_cross_entropy"))) << looked_up;
    EXPECT_FALSE(users.contain(find_op("wait"))) << looked_up;
  }
}

TEST(Transfer, CopyAndWait) {
  const Tensor x = Tensor::random(DType::bf16, {5, 77}, 1);
  for (const char* to : {"host", "device"}) {
    const RunResult found = run_op("copy_start", {x}, {{"to", to}});
    expect_same_bytes(found.outputs[0], x);
    EXPECT_EQ(found.outputs[1].at(0), 1);
    expect_same_bytes(run_op("wait", {found.outputs[0], found.outputs[1]}).outputs[0], x);
  }
  EXPECT_THROW(run_op("copy_start", {x}, {{"to", "disk"}}), InternalError);
}

TEST(Transfer, AllReduce) {
  FakeHost host;
  const Tensor x = Tensor::random(DType::f32, {70000}, 1), y(DType::f64, {1}, {5});
  for (bool in_place : {false, true}) {
    const RunOptions options{.only = {}, .use_may = in_place, .host = &host};
    const Tensor found = run_op("all_reduce_start", {x}, {}, options).outputs[0];
    for (int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(found.as<float>()[i], 3 * x.as<float>()[i]);
    EXPECT_EQ(run_op("all_reduce_start", {y}, {}, options).outputs[0].at(0), 15);
  }
}

// Ten rows in three shards: four rows each, the last one cut. Kernels see the local dimensions.
class Sharded : public testing::Test {
 protected:
  RunResult run(std::string_view op, const Tensor& input, std::vector<int64_t> dims) {
    const KernelSpec spec{op, {}, {input.type()}, {{DType::f32, dims, {}}, {DType::i32, {1}, {}}}, 0};
    RunResult result;
    for (const ConcreteType& type : spec.outputs) result.outputs.emplace_back(type.dtype, type.dims);
    const std::vector<TensorView> in{input.view()}, out{result.outputs[0].view(), result.outputs[1].view()};
    make_cpu_kernel(spec, host_facts())->run({in, out, {}, 0, host_});
    EXPECT_TRUE(result.outputs[0].buffer().guard_intact());
    return result;
  }
  FakeHost fake_;
  HostPort* host_ = &fake_;
};

TEST_F(Sharded, AllGatherCutsThePadding) {
  const Tensor local = Tensor::random(DType::f32, {4, 2}, 1);
  const RunResult found = run("all_gather_start", local, {10, 2});
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(found.outputs[0].at(i), local.at(i % 8));
  EXPECT_EQ(found.outputs[1].at(0), 1);
}

TEST_F(Sharded, ReduceScatterKeepsOneShard) {
  const Tensor full = Tensor::random(DType::f32, {10, 2}, 1);
  const RunResult found = run("reduce_scatter_start", full, {4, 2});
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(found.outputs[0].as<float>()[i], 3 * full.as<float>()[8 + i]);
}

TEST_F(Sharded, NeedsAProcessGroup) {
  class Alone final : public HostPort {
    void next_batch(int64_t, std::span<int32_t>, std::span<int32_t>, int64_t, int64_t) override {}
  } alone;
  host_ = &alone;
  EXPECT_THROW(run("all_gather_start", Tensor(DType::f32, {4, 2}), {10, 2}), InternalError);
  EXPECT_THROW(run("reduce_scatter_start", Tensor(DType::f32, {10, 2}), {4, 2}), InternalError);
  host_ = nullptr;
  EXPECT_THROW(run("all_gather_start", Tensor(DType::f32, {4, 2}), {10, 2}), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
