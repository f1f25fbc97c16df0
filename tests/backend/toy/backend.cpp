// The planning half of the toy backend: an alignment, a scratch rule and its own capabilities.
#include "ops/backend.h"

#include "toy.h"

namespace headroom {
namespace {

class ToyBackend final : public Backend {
 public:
  ToyBackend() {
    scratch_.add("linear", [](const OpCall& call, const DeviceFacts&) { return toy::row_of_sums(call); });
  }
  std::string_view name() const override { return "toy"; }
  int64_t alignment() const override { return toy::kAlignment; }
  const ScratchRules& scratch() const override { return scratch_; }

  std::optional<Capabilities> capabilities_named(std::string_view name) const override {
    for (int64_t number = 1; number <= 3; ++number)
      if (fmt::format("{} gears", number) == name) return capabilities_numbered(number);
    return std::nullopt;
  }
  // The number is its number of gears.
  std::optional<Capabilities> capabilities_numbered(int64_t number) const override {
    if (number < 1 || number > 3) return std::nullopt;
    return Capabilities().add(toy::kGears, static_cast<int>(number));
  }
  std::string capabilities_name(const Capabilities& capabilities) const override { return describe(capabilities); }
  std::string_view known_names() const override { return "1 to 3 gears"; }
  std::string describe(const Capabilities& capabilities) const override {
    return fmt::format("{} gears", capabilities.version(toy::kGears));
  }

 private:
  ScratchRules scratch_;
};

}  // namespace

void register_toy_backend(Backends& backends);
void register_toy_backend(Backends& backends) { backends.add(std::make_unique<ToyBackend>()); }

}  // namespace headroom
