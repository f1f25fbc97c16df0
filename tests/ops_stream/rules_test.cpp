// Shape rules: what they infer, and that they refuse every malformed call.
#include <gtest/gtest.h>

#include "base/error.h"
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

TEST(Rules, Norms) {
  const Attrs eps{{"eps", 1e-5}};
  EXPECT_EQ(infer("rms_norm", {kX, f32({12})}, eps), std::vector<Type>{kX});
  EXPECT_EQ(infer("rms_norm", {kX, f32({12})}, {{"eps", 1e-5}, {"dtype", "bf16"}}), std::vector<Type>{kNarrow});
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
  refuse("copy_start", {disk}, {{"to", "device"}});  // its rate is the disk's: it must say so
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

// A computed value lies on the device, wherever its inputs come from.
TEST(Rules, ResultsLieOnTheDevice) {
  Type host = kX;
  host.tier = Tier::host;
  EXPECT_EQ(infer("gelu", {host}).at(0).tier, Tier::device);
  EXPECT_EQ(infer("add", {host, kX}).at(0).tier, Tier::device);
}

}  // namespace
}  // namespace headroom
