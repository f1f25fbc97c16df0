// Shape rules: what they infer, and that they refuse every malformed call.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr SymbolId kBatch = 0, kSeq = 1;

Type tensor(DType dtype, std::vector<int64_t> dims) {
  Type type{dtype, {}};
  for (int64_t dim : dims)
    type.shape.push_back(dim < 0 ? Dim::of_symbol(static_cast<SymbolId>(-1 - dim)) : Dim::of(dim));
  return type;
}
Type f32(std::vector<int64_t> dims) { return tensor(DType::f32, std::move(dims)); }
Type bf16(std::vector<int64_t> dims) { return tensor(DType::bf16, std::move(dims)); }
Type i32(std::vector<int64_t> dims) { return tensor(DType::i32, std::move(dims)); }
Type sharded(Type type, int32_t parts, int32_t axis = 0) {
  type.shard = ShardSpec{axis, parts};
  return type;
}

std::vector<Type> infer(std::string_view op, const std::vector<Type>& inputs, const Attrs& attrs = {}) {
  return find_op(op).infer(inputs, attrs);
}
void refuse(std::string_view op, const std::vector<Type>& inputs, const Attrs& attrs = {}) {
  EXPECT_THROW(infer(op, inputs, attrs), InternalError) << op;
}

const Type kX = f32({-1, -2, 12});  // [batch, seq, 12]
const Type kNarrow = bf16({-1, -2, 12});

TEST(Rules, Embeddings) {
  EXPECT_EQ(infer("embedding", {i32({-1, -2}), f32({99, 12})}), std::vector<Type>{kX});
  EXPECT_EQ(infer("embedding", {i32({-1, -2}), f32({99, 12})}, {{"dtype", "bf16"}}), std::vector<Type>{kNarrow});
  refuse("embedding", {i32({-1, -2})});
  refuse("embedding", {f32({-1, -2}), f32({99, 12})});
  refuse("embedding", {i32({-1, -2}), f32({99})});
  refuse("embedding", {i32({-1, -2}), sharded(f32({99, 12}), 2)});
  refuse("embedding", {i32({-1, -2}), f32({99, 12})}, {{"dtype", "i8"}});
  EXPECT_EQ(infer("embedding_grad", {i32({-1, -2}), kNarrow, f32({99, 12})}), std::vector<Type>{f32({99, 12})});
  refuse("embedding_grad", {i32({-1, -2}), kNarrow, f32({99, 13})});
  EXPECT_EQ(infer("embedding", {i32({-1, -2}), f32({99, 12})}, {{"padding", int64_t{98}}}), std::vector<Type>{kX});
  for (int64_t row : {-1, 99}) {
    refuse("embedding", {i32({-1, -2}), f32({99, 12})}, {{"padding", row}});
    refuse("embedding_grad", {i32({-1, -2}), kNarrow, f32({99, 12})}, {{"padding", row}});
  }
  refuse("embedding_grad", {i32({-1, -2}), kNarrow, f32({99, 12})}, {{"accumulate", "sometimes"}});
  EXPECT_EQ(infer("position_embedding", {kNarrow, f32({64, 12}), i32({1})}), std::vector<Type>{kNarrow});
  refuse("position_embedding", {kX, f32({64, 13})});
  refuse("position_embedding", {kX, f32({64, 12}), i32({2})});
  refuse("position_embedding_grad", {kX, bf16({64, 12})});
}

ValueId first_of(std::string_view op, std::vector<ValueId> inputs, const Attrs& attrs, std::string_view name) {
  Node node;
  node.op = &find_op(op);
  node.inputs = std::move(inputs);
  node.attrs = attrs;
  return operand(node, name);
}

TEST(Rules, OperandsHaveNames) {
  EXPECT_EQ(first_of("adamw", {10, 11, 12, 13, 14, 15}, {}, "gradient"), 11);
  EXPECT_EQ(first_of("adamw", {10, 11, 12, 13, 14, 15}, {}, "copy"), kNone);
  EXPECT_EQ(first_of("adamw", {10, 11, 12, 13, 14, 15, 16}, {}, "copy"), 16);
  const Attrs all{{"bias", int64_t{1}}, {"low_rank", int64_t{1}}, {"residual", int64_t{1}}};
  EXPECT_EQ(first_of("linear", {1, 2, 3, 4, 5, 6}, all, "bias"), 3);
  EXPECT_EQ(first_of("linear", {1, 2, 3, 4, 5, 6}, all, "q"), 5);
  EXPECT_EQ(first_of("linear", {1, 2, 3, 4, 5, 6}, all, "residual"), 6);
  EXPECT_EQ(first_of("linear", {1, 2, 3}, {{"residual", int64_t{1}}}, "residual"), 3);
  EXPECT_EQ(first_of("linear_group", {1, 2, 3, 4, 5}, {{"bias", int64_t{1}}}, "bias"), 4);
  EXPECT_EQ(first_of("attention", {1, 2, 3, 4}, {}, "mask"), 4);
  EXPECT_EQ(first_of("attention", {1, 2, 3, 4}, {{"dropout", 0.1}}, "hyper"), 4);
  EXPECT_EQ(first_of("linear_cross_entropy", {1, 2, 3, 4, 5, 6}, {{"bias", int64_t{1}}}, "scale"), 5);
  EXPECT_EQ(first_of("linear_cross_entropy", {1, 2, 3, 4, 5}, {{"bias", int64_t{1}}}, "scale"), kNone);
  Node node;
  node.op = &find_op("adamw");
  node.inputs = {10, 11, 12, 13, 14, 15};
  operand_of(node, "gradient") = 20;
  EXPECT_EQ(node.inputs[1], 20);
  EXPECT_THROW(operand_of(node, "copy"), InternalError);
}

TEST(Rules, KindsAndProducts) {
  for (const auto& [op, kind] : {std::pair{"cast", OpKind::cast},
                                 {"add", OpKind::sum},
                                 {"adamw", OpKind::update},
                                 {"adam", OpKind::update},
                                 {"moments", OpKind::update},
                                 {"sgd", OpKind::update},
                                 {"rmsprop", OpKind::update},
                                 {"adagrad", OpKind::update},
                                 {"lion", OpKind::update},
                                 {"adafactor", OpKind::update},
                                 {"muon", OpKind::update},
                                 {"adamw_8bit", OpKind::update},
                                 {"lion_8bit", OpKind::update},
                                 {"sum_squares", OpKind::squared_norm},
                                 {"copy_start", OpKind::copy_start},
                                 {"wait", OpKind::wait},
                                 {"all_gather_start", OpKind::collective_start},
                                 {"reduce_scatter_start", OpKind::collective_start},
                                 {"all_reduce_start", OpKind::collective_start},
                                 {"loop", OpKind::loop},
                                 {"moe_route", OpKind::router},
                                 {"embedding", OpKind::lookup},
                                 {"rms_norm_grad", OpKind::norm},
                                 {"scale", OpKind::other}})
    EXPECT_EQ(find_op(op).kind(), kind) << op;
  EXPECT_TRUE(starts_transfer(OpKind::copy_start) && !starts_transfer(OpKind::wait) && is_transfer(OpKind::wait));
  const Product layer{ProductPart::output};
  EXPECT_EQ(find_op("linear").product(), layer);
  EXPECT_NE(find_op("linear_group").product(), layer);
  EXPECT_NE(find_op("expert_linear").product(), layer);
  EXPECT_EQ(find_op("expert_linear").product().part, ProductPart::output);
  EXPECT_EQ(find_op("add").product().part, ProductPart::none);
  EXPECT_TRUE(find_op("moe_balance_loss").spans_batch());
  EXPECT_FALSE(find_op("linear_cross_entropy").spans_batch());
  // Kinds of products agree with the class that predicts their time.
  for (const auto& [name, op] : ops().all())
    EXPECT_EQ(op->product().part != ProductPart::none, op->cost_class() == CostClass::gemm) << name;
}

ProductShape product_of(std::string_view op, const std::vector<ConcreteType>& inputs,
                        const std::vector<ConcreteType>& outputs, const Attrs& attrs = {}) {
  return find_op(op).product_shape({inputs, outputs, attrs});
}

TEST(Rules, ShapesOfProducts) {
  const auto expect = [](const ProductShape& found, int64_t rows, int64_t outs, int64_t ins) {
    EXPECT_EQ(found.rows, rows);
    EXPECT_EQ(found.outs, outs);
    EXPECT_EQ(found.ins, ins);
  };
  const ConcreteType x{DType::f32, {2, 3, 5}}, y{DType::f32, {2, 3, 7}}, w{DType::f32, {7, 5}}, t{DType::f32, {5, 7}};
  expect(product_of("linear", {x, w}, {y}), 6, 7, 5);
  expect(product_of("linear", {x, t}, {y}, {{"layout", "in_out"}}), 6, 7, 5);
  expect(product_of("linear_dx", {y, w}, {x}), 6, 7, 5);
  expect(product_of("linear_dw", {x, y, w}, {w}), 6, 7, 5);
  expect(product_of("linear_group", {x, w, w}, {y, y}), 6, 14, 5);
  const ConcreteType experts{DType::f32, {3, 7, 5}}, offsets{DType::i32, {4}};
  expect(product_of("expert_linear", {x, experts, offsets}, {y}), 2, 7, 5);
  expect(product_of("expert_linear_dx", {y, experts, offsets}, {x}), 2, 7, 5);
  expect(product_of("expert_linear_dw", {x, y, offsets, experts}, {experts}), 2, 7, 5);
}

TEST(Rules, OutsideOfTraining) {
  std::vector<int32_t> inputs{1, 2};
  Attrs attrs{{"rate", 0.5}, {"tensor", int64_t{3}}};
  EXPECT_FALSE(find_op("dropout").is_identity(attrs));
  find_op("dropout").leave_training(inputs, attrs);
  EXPECT_TRUE(find_op("dropout").is_identity(attrs));
  EXPECT_FALSE(find_op("dropout").is_identity(attrs.set("dtype", "bf16")));
  inputs = {1, 2, 3, 4, 5};
  attrs = {{"heads", int64_t{2}}, {"dropout", 0.1}, {"tensor", int64_t{3}}};
  find_op("attention").leave_training(inputs, attrs);
  EXPECT_EQ(inputs, (std::vector<int32_t>{1, 2, 3, 5}));
  EXPECT_EQ(attrs, (Attrs{{"heads", int64_t{2}}}));
  find_op("attention").leave_training(inputs, attrs);
  EXPECT_EQ(inputs.size(), 4u);
}

TEST(Rules, Norms) {
  const Attrs eps{{"eps", 1e-5}};
  EXPECT_EQ(infer("rms_norm", {kX, f32({12})}, eps), std::vector<Type>{kX});
  EXPECT_EQ(infer("rms_norm", {kX, f32({12})}, {{"eps", 1e-5}, {"dtype", "bf16"}}), std::vector<Type>{kNarrow});
  const Attrs sum{{"eps", 1e-5}, {"residual", int64_t{1}}};
  EXPECT_EQ(infer("rms_norm", {kX, f32({12}), kX}, sum), std::vector<Type>{kX});
  refuse("rms_norm", {kX, f32({12})}, sum);
  refuse("rms_norm", {kX, f32({12}), kNarrow}, sum);
  refuse("rms_norm", {kX, f32({12}), kX}, eps);
  refuse("rms_norm", {kX, f32({12})});
  refuse("rms_norm", {kX, f32({13})}, eps);
  refuse("rms_norm", {kX, bf16({12})}, eps);
  refuse("rms_norm", {i32({-1, -2, 12}), f32({12})}, eps);
  refuse("layer_norm", {kX, f32({12})}, eps);
  const Attrs full{{"eps", 1e-5}, {"train", int64_t{1}}, {"addend", int64_t{1}}, {"accumulate", "carried"}};
  EXPECT_EQ(infer("rms_norm_grad", {kX, f32({12}), kNarrow, f32({12}), kX}, full), (std::vector<Type>{kX, f32({12})}));
  refuse("rms_norm_grad", {kX, f32({12}), kNarrow, f32({12})}, full);
  refuse("rms_norm_grad", {kX, f32({12}), kNarrow, f32({12}), kNarrow}, full);
  refuse("rms_norm_grad", {kX, f32({12}), bf16({-2, -1, 12}), f32({12}), kX}, full);
  Attrs both = full;
  both.set("train", int64_t{3});
  EXPECT_EQ(infer("layer_norm_grad", {kNarrow, f32({12}), kX, f32({12}), f32({12}), kNarrow}, both),
            (std::vector<Type>{kNarrow, f32({12}), f32({12})}));
  refuse("layer_norm_grad", {kX, f32({12}), kX, f32({12}), kX}, both);
  both.set("train", int64_t{4});
  refuse("layer_norm_grad", {kX, f32({12}), kX, kX}, both);
}

TEST(Rules, Rotary) {
  const Attrs heads{{"heads", int64_t{3}}};
  EXPECT_EQ(infer("rotary", {kNarrow, f32({64, 4})}, heads), std::vector<Type>{kNarrow});
  refuse("rotary", {kX, f32({64, 4})});
  EXPECT_EQ(infer("rotary", {kX, f32({64, 4})}, {{"heads", int64_t{1}}}), std::vector<Type>{kX});  // 4 channels turn
  refuse("rotary", {kX, f32({64, 3})}, {{"heads", int64_t{4}}});                                   // odd table
  refuse("rotary", {kX, f32({64, 6})}, heads);
  refuse("rotary", {kX, f32({64, 4}), i32({1})}, heads);
  refuse("rotary", {kX, f32({64, 4})}, {{"heads", int64_t{3}}, {"offset", int64_t{1}}});
  refuse("rotary", {f32({-1, -2, -1}), f32({64, 4})}, heads);
  const Attrs table{{"positions", int64_t{64}}, {"head_dim", int64_t{4}}, {"theta", 1e4}};
  EXPECT_EQ(infer("rope_table", {}, table), std::vector<Type>{f32({64, 4})});
  EXPECT_EQ(infer("rope_table", {f32({64, 4})}, table), std::vector<Type>{f32({64, 4})});
  refuse("rope_table", {f32({64, 5})}, table);
  for (const auto& [name, value] : std::vector<std::pair<const char*, Attr>>{{"positions", int64_t{0}},
                                                                             {"head_dim", int64_t{5}},
                                                                             {"theta", 0.0},
                                                                             {"scaling", "yarn"},
                                                                             {"scaling", "linear"},
                                                                             {"scaling", "llama3"}}) {
    Attrs bad = table;
    refuse("rope_table", {}, bad.set(name, value));
  }
}

TEST(Rules, Elementwise) {
  EXPECT_EQ(infer("add", {kX, kX}), std::vector<Type>{kX});
  refuse("add", {kX, kNarrow});
  refuse("add", {kX, f32({-2, -1, 12})});
  refuse("add", {kX, sharded(kX, 2)});
  EXPECT_EQ(infer("swiglu_grad", {kX, kX, kX}), (std::vector<Type>{kX, kX}));
  refuse("swiglu", {kX, f32({-1, -2, 13})});
  refuse("swiglu_grad", {kX, kX, kNarrow});
  refuse("gelu", {kX}, {{"approximate", "fast"}});
  EXPECT_EQ(infer("cast", {kX}, {{"dtype", "bf16"}}), std::vector<Type>{kNarrow});
  refuse("cast", {kX});
  EXPECT_EQ(infer("cast", {kX, kNarrow}, {{"dtype", "bf16"}}), std::vector<Type>{kNarrow});
  refuse("cast", {kX, kX}, {{"dtype", "bf16"}});
  EXPECT_TRUE(find_op("cast").aliases({}, 2).at(0).must);
  refuse("cast", {i32({3})}, {{"dtype", "f32"}});
  Type blocks = kX;
  blocks.storage = {32, 4, DType::f32};
  refuse("add", {blocks, blocks});
}

TEST(Rules, SplitAndConcat) {
  const std::vector<Type> parts{f32({-1, -2, 7}), f32({-1, -2, 5})};
  EXPECT_EQ(infer("split", {kX}, {{"sizes", "7,5"}}), parts);
  EXPECT_EQ(infer("concat", parts), std::vector<Type>{kX});
  for (const char* sizes : {"", "12,", ",12", "7,5,1", "12,0", "-1,13", "7 5", "7,99999999999999999999", "x"})
    refuse("split", {kX}, {{"sizes", sizes}});
  refuse("concat", {parts[0], bf16({-1, -2, 5})});
  refuse("concat", {parts[0], f32({-1, -1, 5})});
  EXPECT_EQ(infer("concat", {parts[1]}, {{"sizes", "7,5"}, {"present", "01"}}), std::vector<Type>{kX});
  refuse("concat", {parts[0]}, {{"sizes", "7,5"}, {"present", "01"}});
  refuse("concat", parts, {{"sizes", "7,5"}, {"present", "01"}});
  refuse("concat", {parts[0]}, {{"sizes", "7,5"}, {"present", "1"}});
}

TEST(Rules, Update) {
  const Attrs attrs{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}};
  const Type w = sharded(f32({10, 4}), 3), hyper = f32({16}), one = f32({1});
  EXPECT_EQ(infer("adamw", {w, w, w, w, hyper, one}, attrs), (std::vector<Type>{w, w, w}));
  const Type shadow = sharded(bf16({10, 4}), 3);
  EXPECT_EQ(infer("adamw", {w, w, w, w, hyper, one, shadow}, attrs), (std::vector<Type>{w, w, w, shadow}));
  refuse("adamw", {w, f32({10, 4}), w, w, hyper, one}, attrs);
  refuse("adamw", {w, w, w, w, hyper, one, w}, attrs);
  refuse("adamw", {w, w, w, w, f32({15}), one}, attrs);
  refuse("adamw", {w, w, w, w, hyper, one}, {{"beta1", 1.0}, {"beta2", 0.9}, {"eps", 0.0}});
  EXPECT_EQ(find_op("adamw").aliases(attrs, 7).size(), 4u);
  EXPECT_TRUE(find_op("adamw").has_effect());
  EXPECT_EQ(find_op("adamw").cost_class(), CostClass::optimizer);
  const Type sum = tensor(DType::f64, {1});
  EXPECT_EQ(infer("sum_squares", {w, sum}), std::vector<Type>{sum});
  refuse("sum_squares", {w, one});
  refuse("sum_squares", {w, sum}, {{"accumulate", "carried"}});
  EXPECT_EQ(infer("clip_coefficient", {sum, hyper}), std::vector<Type>{one});
  EXPECT_EQ(infer("loss_scale", {hyper}), std::vector<Type>{one});
}

TEST(Rules, NextLabels) {
  EXPECT_EQ(infer("next_labels", {i32({-1, -2})}), std::vector<Type>{i32({-1, -2})});
  refuse("next_labels", {f32({-1, -2})});
  refuse("next_labels", {i32({-2})});
}

TEST(Rules, Rows) {
  const auto part = [](int64_t number, int64_t parts) { return Attrs{{"part", number}, {"parts", parts}}; };
  Type rows = kX;
  rows.shape[1] = Dim::of_part(kSeq, 1, 3);
  EXPECT_EQ(infer("take_rows", {kX}, part(1, 3)), std::vector<Type>{rows});
  EXPECT_EQ(infer("put_rows", {rows}, part(1, 3)), std::vector<Type>{kX});
  EXPECT_EQ(infer("put_rows", {rows, kX}, part(1, 3)), std::vector<Type>{kX});
  EXPECT_EQ(infer("take_rows", {i32({2, 7})}, part(0, 3)), std::vector<Type>{i32({2, 3})});
  EXPECT_EQ(infer("put_rows", {i32({2, 3}), i32({2, 7})}, part(0, 3)), std::vector<Type>{i32({2, 7})});
  refuse("take_rows", {f32({7})}, part(0, 3));
  refuse("take_rows", {sharded(kX, 2)}, part(0, 3));
  refuse("take_rows", {rows}, part(0, 3));
  for (const auto& [number, parts] : {std::pair{3, 3}, {-1, 3}, {0, 1}}) refuse("take_rows", {kX}, part(number, parts));
  refuse("put_rows", {rows}, part(0, 3));
  refuse("put_rows", {kX}, part(0, 3));
  refuse("put_rows", {i32({2, 3})}, part(0, 3));
  refuse("put_rows", {rows, kNarrow}, part(1, 3));
  refuse("put_rows", {i32({2, 4}), i32({2, 7})}, part(0, 3));
}

TEST(Rules, Host) {
  const Attrs symbols{{"batch_symbol", int64_t{kBatch}}, {"seq_symbol", int64_t{kSeq}}};
  EXPECT_EQ(infer("next_batch", {}, symbols), (std::vector<Type>{i32({-1, -2}), i32({-1, -2})}));
  refuse("next_batch", {}, {{"batch_symbol", int64_t{0}}});
  EXPECT_EQ(infer("allocate", {}, {{"dtype", "bf16"}, {"dims", "49152,576"}}), std::vector<Type>{bf16({49152, 576})});
  EXPECT_EQ(infer("allocate", {}, {{"dtype", "f32"}, {"dims", "10"}, {"shard_parts", int64_t{3}}}),
            std::vector<Type>{sharded(f32({10}), 3)});
  for (const char* dims : {"", "0", "3,", "-3", "1000000000,1000000000", "99999999999999999999", "1,1,1,1,1,1,1,1,1"})
    refuse("allocate", {}, {{"dtype", "f32"}, {"dims", dims}});
  refuse("allocate", {}, {{"dtype", "f99"}, {"dims", "3"}});
  refuse("host_stage", {}, {{"bytes", int64_t{-1}}});
  EXPECT_EQ(infer("select_last", {f32({1, -2, 12}), i32({1})}), std::vector<Type>{f32({1, 1, 12})});
  refuse("select_last", {kX, i32({1})});
  EXPECT_EQ(infer("loop", {kX, kNarrow}), (std::vector<Type>{kX, kNarrow}));
  const std::vector<Alias> aliases = find_op("loop").aliases({}, 2);
  ASSERT_EQ(aliases.size(), 2u);
  EXPECT_TRUE(aliases[1].must && aliases[1].input == 1 && aliases[1].output == 1);
}

TEST(Rules, Transfer) {
  const Type token = i32({1});
  Type host = kX;
  host.tier = Tier::host;
  EXPECT_EQ(infer("copy_start", {kX}, {{"to", "host"}}), (std::vector<Type>{host, token}));
  EXPECT_EQ(infer("copy_start", {host}, {{"to", "device"}}), (std::vector<Type>{kX, token}));
  Type disk = kX;
  disk.tier = Tier::disk;
  EXPECT_EQ(infer("copy_start", {kX, disk}, {{"to", "disk"}}), (std::vector<Type>{disk, token}));
  EXPECT_EQ(infer("copy_start", {disk}, {{"to", "device"}, {"from", "disk"}}), (std::vector<Type>{kX, token}));
  refuse("copy_start", {disk}, {{"to", "device"}});  // the disk has its own rate, so the disk must be stated
  refuse("copy_start", {host}, {{"to", "device"}, {"from", "disk"}});
  refuse("copy_start", {kX}, {{"to", "moon"}});
  EXPECT_EQ(infer("wait", {host, token}), std::vector<Type>{host});
  refuse("wait", {kX, kX});
  EXPECT_TRUE(find_op("wait").aliases({}, 2).at(0).must);
  const Type full = f32({10, 4}), local = sharded(full, 3);
  const Attrs three{{"axis", int64_t{0}}, {"parts", int64_t{3}}};
  EXPECT_EQ(infer("all_gather_start", {local}, three), (std::vector<Type>{full, token}));
  EXPECT_EQ(infer("reduce_scatter_start", {full}, three), (std::vector<Type>{local, token}));
  EXPECT_EQ(infer("all_reduce_start", {full}), (std::vector<Type>{full, token}));
  refuse("all_gather_start", {full}, three);
  refuse("all_gather_start", {sharded(full, 2)}, three);
  refuse("all_gather_start", {sharded(full, 3, 1)}, {{"axis", int64_t{1}}, {"parts", int64_t{3}}});
  refuse("reduce_scatter_start", {bf16({10, 4})}, three);
  refuse("reduce_scatter_start", {full}, {{"axis", int64_t{0}}, {"parts", int64_t{3}}, {"reduce", "max"}});
  refuse("all_reduce_start", {i32({3})});
  EXPECT_EQ(find_op("all_reduce_start").cost_class(), CostClass::collective);
}

TEST(Rules, WhatFamiliesAdd) {
  EXPECT_EQ(infer("rms_norm", {kX, f32({4})}, {{"eps", 1e-5}}), std::vector<Type>{kX});  // three runs of four
  refuse("rms_norm", {kX, f32({5})}, {{"eps", 1e-5}});
  refuse("rms_norm", {kX, f32({12})}, {{"eps", 1e-5}, {"unit", int64_t{2}}});
  refuse("swiglu", {kX, kX}, {{"activation", "relu"}});
  EXPECT_EQ(infer("scale", {kX}, {{"factor", 2.0}}), std::vector<Type>{kX});
  refuse("scale", {kX});
  EXPECT_EQ(infer("softcap", {kX}, {{"cap", 2.0}}), std::vector<Type>{kX});
  refuse("softcap", {kX}, {{"cap", 0.0}});
  refuse("softcap_grad", {kX, kNarrow}, {{"cap", 2.0}});
  EXPECT_EQ(infer("sequence_lengths", {i32({3, 7})}, {{"pad", int64_t{0}}}), std::vector<Type>{i32({3})});
  refuse("sequence_lengths", {i32({3, 7})});
  refuse("sequence_lengths", {i32({3})}, {{"pad", int64_t{0}}});
  EXPECT_EQ(infer("padding_starts", {i32({3, 7})}, {{"pad", int64_t{0}}}), std::vector<Type>{i32({3, 7})});
  refuse("padding_starts", {i32({3, 7})});
  refuse("padding_starts", {i32({3})}, {{"pad", int64_t{0}}});
  EXPECT_EQ(infer("zero_ids", {i32({3, 7})}), std::vector<Type>{i32({3, 7})});
  refuse("zero_ids", {kX});
  refuse("split", {kX}, {{"sizes", "7,5"}, {"groups", int64_t{2}}});
  const Attrs longrope{{"positions", int64_t{9}}, {"head_dim", int64_t{4}}, {"theta", 1e4}, {"scaling", "longrope"}};
  Attrs fitting = longrope, short_list = longrope, negative = longrope;
  EXPECT_EQ(infer("rope_table", {}, fitting.set("factors", "1,2.5")), std::vector<Type>{f32({9, 4})});
  refuse("rope_table", {}, longrope);
  refuse("rope_table", {}, short_list.set("factors", "1"));
  refuse("rope_table", {}, negative.set("factors", "1,-2"));
  refuse("rope_table", {}, negative.set("factors", "1,two"));
}

// A computed value is on the device, wherever its inputs come from.
TEST(Rules, ResultsLieOnTheDevice) {
  Type host = kX;
  host.tier = Tier::host;
  EXPECT_EQ(infer("gelu", {host}).at(0).tier, Tier::device);
  EXPECT_EQ(infer("add", {host, kX}).at(0).tier, Tier::device);
}

}  // namespace
}  // namespace headroom
