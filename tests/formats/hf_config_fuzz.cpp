// Any config.json gives values in range or an Error from every getter.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "formats/hf_config.h"

namespace {

template <typename Call>
void try_getter(Call call) {
  try {
    call();
  } catch (const headroom::Error&) {
  }
}

void require(bool condition) {
  if (!condition) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  HfConfig c;
  try {
    c = HfConfig::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  try_getter([&] { require(c.vocab_size() >= 1); });
  try_getter([&] { require(c.hidden_size() >= 1); });
  try_getter([&] { require(c.layers() >= 1); });
  try_getter([&] { require(c.kv_heads() >= 1); });
  try_getter([&] { require(c.head_dim() >= 0); });
  try_getter([&] { require(c.intermediate_size() >= 1); });
  try_getter([&] { require(c.max_positions() >= 1); });
  try_getter([&] { require(c.norm_epsilon() >= 0); });
  try_getter([&] { require(c.initializer_range() >= 0); });
  try_getter([&] { c.activation(); });
  try_getter([&] { c.tied(); });
  try_getter([&] { require(c.sliding_window(0).value_or(1) >= 1); });
  try_getter([&] { require(c.sliding_window(40).value_or(1) >= 1); });
  try_getter([&] { require(c.rope_theta() >= 1); });
  try_getter([&] { require(c.rope_scaling().factor >= 1); });
  try_getter([&] { require(c.rope_theta("sliding_attention") >= 1); });
  try_getter([&] { require(c.rope_scaling("full_attention").amplitude > 0); });
  try_getter([&] { require(c.rotary_fraction() >= 0 && c.rotary_fraction() <= 1); });
  try_getter([&] { require(!c.dtype().empty()); });
  try_getter([&] { require(c.bos_id().value_or(0) >= 0); });
  try_getter([&] { c.eos_ids(); });
  try_getter([&] { require(c.quantized() != c.quantization_method().empty()); });
  return 0;
}
