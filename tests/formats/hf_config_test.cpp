#include "formats/hf_config.h"

#include <gtest/gtest.h>

#include <set>

#include "../data_files/data_files.h"
#include "expect_error.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

HfConfig parse(const std::string& text) { return HfConfig::parse(text, "m/config.json"); }

HfConfig of(const std::string& family, const std::string& rest = "") {
  return parse(R"({"model_type":")" + family +
               R"(","vocab_size":100,"hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4)" +
               (rest.empty() ? "" : "," + rest) + "}");
}

TEST(HfConfig, DefaultsOfTheFamilies) {
  const HfConfig llama = of("llama");
  EXPECT_EQ(llama.vocab_size(), 100);
  EXPECT_EQ(llama.hidden_size(), 64);
  EXPECT_EQ(llama.layers(), 3);
  EXPECT_EQ(llama.heads(), 4);
  EXPECT_EQ(llama.kv_heads(), 4);
  EXPECT_EQ(llama.head_dim(), 16);
  EXPECT_EQ(llama.max_positions(), 2048);
  EXPECT_EQ(llama.norm_epsilon(), 1e-6);
  EXPECT_EQ(llama.activation(), "silu");
  EXPECT_EQ(llama.rope_theta(), 10000.0);
  EXPECT_EQ(llama.rope_scaling().type, RopeType::standard);
  EXPECT_EQ(llama.dtype(), "float32");
  EXPECT_FALSE(llama.tied());
  EXPECT_FALSE(llama.quantized());
  EXPECT_EQ(llama.quantization_method(), "");
  EXPECT_FALSE(llama.sliding_window(0));
  EXPECT_FALSE(llama.bos_id());
  EXPECT_TRUE(llama.eos_ids().empty());
  EXPECT_TRUE(llama.architectures.empty());
  EXPECT_FALSE(of("qwen2").tied());
  EXPECT_EQ(of("qwen2").max_positions(), 32768);
  EXPECT_EQ(of("mistral").kv_heads(), 8);
  EXPECT_EQ(of("mistral", R"("num_key_value_heads":null)").kv_heads(), 4);
  expect_error(ErrorKind::format, "m/config.json: intermediate_size is missing", [&] { llama.intermediate_size(); });
  expect_error(ErrorKind::format, "max_position_embeddings is missing", [&] { of("falcon").max_positions(); });
}

TEST(HfConfig, PaddingIdsAreTheClasses) {
  for (const char* family :
       {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "gpt_neox", "starcoder2", "gpt2"})
    EXPECT_FALSE(of(family).pad_id()) << family;
  for (const auto& [family, id] :
       {std::pair{"gemma2", 0}, {"gemma3_text", 0}, {"bert", 0}, {"roberta", 1}, {"olmo2", 1}, {"phi3", 32000}})
    EXPECT_EQ(of(family).pad_id(), id) << family;
  EXPECT_FALSE(of("gemma2", R"("pad_token_id":null)").pad_id());
  EXPECT_EQ(of("llama", R"("pad_token_id":-1)").pad_id(), -1);
  EXPECT_EQ(of("gemma2", R"("pad_token_id":7)").pad_id(), 7);
  expect_error(ErrorKind::format, "pad_token_id is \"x\", not an integer",
               [] { of("llama", R"("pad_token_id":"x")").pad_id(); });
}

TEST(HfConfig, Gpt2SpeaksItsOwnNames) {
  const HfConfig gpt2 =
      parse(R"({"model_type":"gpt2","vocab_size":320,"n_embd":64,"n_layer":3,"n_head":4,"n_inner":null,
    "n_positions":256,"layer_norm_epsilon":1e-4,"activation_function":"gelu","architectures":["GPT2LMHeadModel"]})");
  EXPECT_EQ(gpt2.hidden_size(), 64);
  EXPECT_EQ(gpt2.layers(), 3);
  EXPECT_EQ(gpt2.heads(), 4);
  EXPECT_EQ(gpt2.kv_heads(), 4);
  EXPECT_EQ(gpt2.intermediate_size(), 256);
  EXPECT_EQ(gpt2.max_positions(), 256);
  EXPECT_EQ(gpt2.norm_epsilon(), 1e-4);
  EXPECT_EQ(gpt2.activation(), "gelu");
  EXPECT_EQ(gpt2.architectures, std::vector<std::string>{"GPT2LMHeadModel"});
  EXPECT_TRUE(gpt2.tied());
  EXPECT_FALSE(gpt2.sliding_window(2));
  expect_error(ErrorKind::format, "n_head is missing", [] { parse(R"({"model_type":"gpt2"})").heads(); });
}

TEST(HfConfig, BothDialectsOfRotaryPositions) {
  const HfConfig older = of("llama", R"("rope_theta":500000,"torch_dtype":"bfloat16","rope_scaling":{"factor":8.0,
    "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"})");
  const HfConfig newer = of("llama", R"("dtype":"bfloat16","rope_parameters":{"rope_theta":500000.0,"factor":8,
    "low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192.0,"rope_type":"llama3"})");
  for (const HfConfig& config : {older, newer}) {
    EXPECT_EQ(config.rope_theta(), 500000.0);
    EXPECT_EQ(config.dtype(), "bfloat16");
    const RopeScaling scaling = config.rope_scaling();
    EXPECT_EQ(scaling.type, RopeType::llama3);
    EXPECT_EQ(scaling.factor, 8.0);
    EXPECT_EQ(scaling.low_freq_factor, 1.0);
    EXPECT_EQ(scaling.high_freq_factor, 4.0);
    EXPECT_EQ(scaling.original_max_position, 8192);
  }
  const RopeScaling linear = of("llama", R"("rope_scaling":{"type":"linear","factor":2.5})").rope_scaling();
  EXPECT_EQ(linear.type, RopeType::linear);
  EXPECT_EQ(linear.factor, 2.5);
  EXPECT_EQ(of("llama", R"("rope_scaling":null)").rope_scaling().type, RopeType::standard);
  EXPECT_EQ(of("llama", R"("rope_parameters":{"rope_theta":7.0})").rope_scaling().type, RopeType::standard);
  EXPECT_EQ(of("llama", R"("dtype":"torch.float16")").dtype(), "float16");
}

TEST(HfConfig, WrongRotaryPositionsAreNamed) {
  const auto scaling = [](const std::string& json) {
    return [json] { of("llama", "\"rope_scaling\":" + json).rope_scaling(); };
  };
  expect_error(ErrorKind::format, R"(rope_scaling.rope_type is "yarn", not one of default, linear, llama3)",
               scaling(R"({"rope_type":"yarn"})"));
  expect_error(ErrorKind::format, R"(rope_scaling.type is "dynamic")", scaling(R"({"type":"dynamic","factor":2})"));
  expect_error(ErrorKind::format, "rope_scaling.factor is missing", scaling(R"({"type":"linear"})"));
  expect_error(ErrorKind::format, "rope_scaling.factor is 0.5, not a number from 1",
               scaling(R"({"type":"linear","factor":0.5})"));
  expect_error(ErrorKind::format, "rope_scaling.rope_type is missing", scaling(R"({"factor":2})"));
  expect_error(ErrorKind::format, "rope_scaling is [1], not an object", scaling("[1]"));
  expect_error(ErrorKind::format, "rope_scaling.low_freq_factor is missing",
               scaling(R"({"rope_type":"llama3","factor":2})"));
  expect_error(ErrorKind::format, "differs by layer ('full_attention')",
               [] { of("llama", R"("rope_parameters":{"full_attention":{"rope_theta":1.0}})").rope_theta(); });
  expect_error(ErrorKind::format, "rope_theta is -1", [] { of("llama", R"("rope_theta":-1)").rope_theta(); });
}

TEST(HfConfig, RotaryPositionsPerKindOfLayer) {
  const HfConfig newer = of("gemma3_text", R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8,
    "rope_theta":5e5},"sliding_attention":{"rope_type":"default","rope_theta":2e4}})");
  EXPECT_EQ(newer.rope_theta("full_attention"), 5e5);
  EXPECT_EQ(newer.rope_scaling("full_attention").factor, 8);
  EXPECT_EQ(newer.rope_theta("sliding_attention"), 2e4);
  EXPECT_EQ(newer.rope_scaling("sliding_attention").type, RopeType::standard);
  const HfConfig older = of(
      "gemma3_text", R"("rope_theta":1e6,"rope_local_base_freq":3e4,"rope_scaling":{"rope_type":"linear","factor":8})");
  EXPECT_EQ(older.rope_theta("full_attention"), 1e6);
  EXPECT_EQ(older.rope_theta("sliding_attention"), 3e4);
  EXPECT_EQ(older.rope_scaling("full_attention").factor, 8);
  EXPECT_EQ(older.rope_scaling("sliding_attention").type, RopeType::standard);
  EXPECT_EQ(of("gpt_neox", R"("rotary_emb_base":77,"rotary_pct":0.5)").rope_theta(), 77);
  EXPECT_EQ(of("gpt_neox", R"("rotary_emb_base":77,"rotary_pct":0.5)").rotary_fraction(), 0.5);
  EXPECT_EQ(of("gpt_neox").rotary_fraction(), 0.25);
  EXPECT_EQ(of("phi3", R"("rope_parameters":{"partial_rotary_factor":0.75})").rotary_fraction(), 0.75);
}

TEST(HfConfig, Longrope) {
  const auto phi = [](const std::string& fields) {
    return of("phi3", R"("max_position_embeddings":64,"rope_scaling":{"type":"longrope")" + fields + "}");
  };
  const std::string factors = R"(,"short_factor":[1,1.5],"long_factor":[2,8])";
  const RopeScaling scaling = phi(factors + R"(,"original_max_position_embeddings":16)").rope_scaling();
  EXPECT_EQ(scaling.type, RopeType::longrope);
  EXPECT_EQ(scaling.long_factors, (std::vector<double>{2, 8}));
  EXPECT_EQ(scaling.original_max_position, 16);
  EXPECT_NEAR(scaling.amplitude, 1.2247448714, 1e-9);  // sqrt(1 + ln 4 / ln 16)
  EXPECT_EQ(phi(factors + R"(,"attention_factor":1.5)").rope_scaling().amplitude, 1.5);
  EXPECT_EQ(phi(factors).rope_scaling().original_max_position, 4096);
  EXPECT_EQ(phi(factors).rope_scaling().amplitude, 1);
  expect_error(ErrorKind::format, "rope_scaling.short_factor is missing", [&] { phi("").rope_scaling(); });
  expect_error(ErrorKind::format, "rope_scaling.long_factor is 0, not a number",
               [&] { phi(R"(,"short_factor":[1],"long_factor":[0])").rope_scaling(); });
  expect_error(ErrorKind::format, "rope_scaling.long_factor is 3, not a list",
               [&] { phi(R"(,"short_factor":[1],"long_factor":3)").rope_scaling(); });
}

TEST(HfConfig, SlidingWindows) {
  EXPECT_EQ(of("mistral", R"("sliding_window":24)").sliding_window(0), 24);
  EXPECT_FALSE(of("mistral", R"("sliding_window":null)").sliding_window(0));
  EXPECT_EQ(of("mistral").sliding_window(0), 4096);
  EXPECT_FALSE(of("qwen2", R"("sliding_window":24,"use_sliding_window":false)").sliding_window(0));
  const HfConfig windowed = of("qwen2", R"("sliding_window":24,"use_sliding_window":true,"max_window_layers":2)");
  EXPECT_FALSE(windowed.sliding_window(1));
  EXPECT_EQ(windowed.sliding_window(2), 24);
  const HfConfig typed =
      of("qwen2",
         R"("sliding_window":9,"use_sliding_window":true,"layer_types":["sliding_attention","full_attention","odd"])");
  EXPECT_EQ(typed.sliding_window(0), 9);
  EXPECT_FALSE(typed.sliding_window(1));
  const HfConfig gemma2 = of("gemma2", R"("sliding_window":9)"), gemma3 = of("gemma3_text", R"("sliding_window":9)");
  EXPECT_EQ(gemma2.sliding_window(0), 9);
  EXPECT_FALSE(gemma2.sliding_window(1));
  EXPECT_EQ(of("gemma2").sliding_window(2), 4096);
  EXPECT_EQ(gemma3.sliding_window(4), 9);
  EXPECT_FALSE(gemma3.sliding_window(5));
  EXPECT_FALSE(of("phi3").sliding_window(0));
  EXPECT_EQ(of("starcoder2", R"("sliding_window":9)").sliding_window(1), 9);
  expect_error(ErrorKind::format, "at layer 2", [&] { typed.sliding_window(2); });
  expect_error(ErrorKind::format, "too short for layer 3", [&] { typed.sliding_window(3); });
  expect_error(ErrorKind::format, "sliding_window is -3",
               [] { of("mistral", R"("sliding_window":-3)").sliding_window(0); });
}

TEST(HfConfig, GettersCheckTypesAndRanges) {
  const HfConfig config =
      of("llama", R"("a":7,"b":2.0,"c":2.5,"d":"x","e":true,"f":null,"g":18446744073709551615,"h":[1],"i":-4)");
  EXPECT_EQ(config.integer("a", 0, 7), 7);
  EXPECT_EQ(config.integer("b", 0, 7), 2);
  EXPECT_EQ(config.integer("f", 0, 7, 3), 3);
  EXPECT_EQ(config.number("c", 0, 3), 2.5);
  EXPECT_EQ(config.text("d"), "x");
  EXPECT_TRUE(config.boolean("e"));
  EXPECT_FALSE(config.boolean("none", false));
  EXPECT_FALSE(config.has("f"));
  expect_error(ErrorKind::format, "m/config.json: a is 7, not an integer from 8 to 9",
               [&] { config.integer("a", 8, 9); });
  expect_error(ErrorKind::format, "c is 2.5, not an integer", [&] { config.integer("c", 0, 9); });
  expect_error(ErrorKind::format, "d is \"x\", not an integer", [&] { config.integer("d", 0, 9); });
  expect_error(ErrorKind::format, "e is true, not a number", [&] { config.number("e", 0, 9); });
  expect_error(ErrorKind::format, "g is 18446744073709551615", [&] { config.integer("g", 0, INT64_MAX); });
  expect_error(ErrorKind::format, "i is -4, not an integer from 0", [&] { config.integer("i", 0, 9); });
  expect_error(ErrorKind::format, "h is [1], not a string", [&] { config.text("h"); });
  expect_error(ErrorKind::format, "a is 7, not true or false", [&] { config.boolean("a"); });
  expect_error(ErrorKind::format, "none is missing", [&] { config.boolean("none"); });
  expect_error(ErrorKind::format, "a is 7, odd", [&] { config.refuse("a", "odd", "choose an even one"); });
  expect_error(ErrorKind::format, "none is missing, odd", [&] { config.refuse("none", "odd", "choose an even one"); });
}

TEST(HfConfig, TokensAndQuantisation) {
  const HfConfig config = of(
      "llama", R"("bos_token_id":1,"eos_token_id":[2,9],"quantization_config":{"quant_method":"gptq"},"dtype":"int3")");
  EXPECT_EQ(config.bos_id(), 1);
  EXPECT_EQ(config.eos_ids(), (std::vector<int64_t>{2, 9}));
  EXPECT_TRUE(config.quantized());
  EXPECT_EQ(config.quantization_method(), "gptq");
  expect_error(ErrorKind::format, "dtype is \"int3\"", [&] { config.dtype(); });
  EXPECT_EQ(of("llama", R"("quantization_config":{"load_in_8bit":true})").quantization_method(), "bitsandbytes");
  EXPECT_EQ(of("llama", R"("eos_token_id":2)").eos_ids(), std::vector<int64_t>{2});
  expect_error(ErrorKind::format, "eos_token_id is \"</s>\"",
               [] { of("llama", R"("eos_token_id":["</s>"])").eos_ids(); });
}

TEST(HfConfig, MalformedFiles) {
  TemporaryDirectory directory;
  expect_error(ErrorKind::usage, "config.json", [&] { HfConfig::read(directory.path()); });
  expect_error(ErrorKind::format, "not a JSON object but array", [] { parse("[]"); });
  expect_error(ErrorKind::format, "model_type is missing", [] { parse("{}"); });
  expect_error(ErrorKind::format, "model_type is 3, not a string", [] { parse(R"({"model_type":3})"); });
  expect_error(ErrorKind::format, "architectures", [] { parse(R"({"model_type":"x","architectures":"y"})"); });
  expect_error(ErrorKind::format, "malformed JSON", [] { parse("{"); });
  directory.write("config.json", R"({"model_type":"llama"})");
  EXPECT_EQ(HfConfig::read(directory.path()).model_type, "llama");
  EXPECT_EQ(HfConfig::read(directory / "config.json").source, directory / "config.json");
}

TEST(HfConfig, EveryRealConfigurationOfTheFamiliesIsRead) {
  const std::filesystem::path models = test::data_file("models");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().string());
    const HfConfig config = HfConfig::read(entry.path());
    const std::string& family = config.model_type;
    const std::set<std::string> read{"llama", "qwen2",  "mistral",     "gpt2",     "qwen3",
                                     "olmo2", "gemma2", "gemma3_text", "gpt_neox", "phi3"};
    if (!read.contains(family)) continue;
    ++seen;
    EXPECT_GT(config.vocab_size() * config.hidden_size() * config.layers() * config.intermediate_size(), 0);
    EXPECT_EQ(config.heads() % config.kv_heads(), 0);
    EXPECT_GT(config.head_dim() * config.max_positions(), 0);
    EXPECT_GT(config.norm_epsilon() * config.rope_theta() * config.initializer_range(), 0);
    config.rope_scaling("full_attention");
    EXPECT_GT(config.rotary_fraction(), 0);
    config.sliding_window(config.layers() - 1);
    EXPECT_FALSE(config.dtype().empty() || config.activation().empty());
    EXPECT_EQ(config.eos_ids().empty(), family == "olmo2");
    EXPECT_EQ(config.quantized(), entry.path().filename() == "llama-3.2-1b-bnb8");
  }
  EXPECT_GE(seen, 22);
}

}  // namespace
}  // namespace headroom
