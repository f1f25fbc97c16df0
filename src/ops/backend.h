// Backends as planning sees them: what a plan depends on besides the graph. The runtime has their kernels, and opens
// their devices by the same names (device/devices.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/op.h"

namespace headroom {

// Bytes of scratch that a backend's kernels of an op need for a call, library workspace included.
using ScratchRule = int64_t (*)(const OpCall& call, const DeviceFacts& facts);

// A backend's rules by op; its kernels of other ops need no scratch.
class ScratchRules {
 public:
  // Throws InternalError if the op already has one.
  void add(std::string_view op, ScratchRule rule);
  // Null for an op that has none.
  ScratchRule find(std::string_view op) const;

 private:
  std::map<std::string, ScratchRule, std::less<>> rules_;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // DeviceFacts::device of its devices, and key "device" of their profiles.
  virtual std::string_view name() const = 0;
  // Alignment in bytes of every tensor in the arena of a device that no profile describes.
  virtual int64_t alignment() const = 0;
  virtual const ScratchRules& scratch() const = 0;

  // A profile gives a device's capabilities by a name, key "isa", and older profiles by a number. nullopt for an
  // unknown one.
  virtual std::optional<Capabilities> capabilities_named(std::string_view name) const = 0;
  virtual std::optional<Capabilities> capabilities_numbered(int64_t number) const = 0;
  virtual std::string capabilities_name(const Capabilities& capabilities) const = 0;
  // The known names, for a refusal: "none, avx2, avx512, avx512_bf16 or amx of a cpu".
  virtual std::string_view known_names() const = 0;
  // For users: "AVX-512 with bf16".
  virtual std::string describe(const Capabilities& capabilities) const = 0;

  // The most bytes that a device takes of the host's memory as its window, and of its own memory, besides the arena,
  // for captured graphs.
  virtual int64_t window_bytes() const { return 0; }
  virtual int64_t graph_bytes() const { return 0; }
};

class Backends {
 public:
  // Throws InternalError if the name is taken.
  void add(std::unique_ptr<Backend> backend);
  // Null if there is none of that name.
  const Backend* find(std::string_view name) const;
  std::span<const std::unique_ptr<Backend>> all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Backend>> all_;
};

// The backends of this build, created once by generated calls of register_NAME_backend(Backends&). Thread-safe.
const Backends& backends();
// The backend of the device with these facts. Throws InternalError if this build has none.
const Backend& backend_of(const DeviceFacts& facts);

// Bytes to book for a call: the scratch of the backend's kernel, and the op's stage (Op::stage_bytes, of host_stage).
int64_t scratch_bytes(const Op& op, const OpCall& call, const DeviceFacts& facts);

// The ops whose calls may take scratch, each looked up once. `facts` must outlive it. Not thread-safe.
class ScratchUsers {
 public:
  explicit ScratchUsers(const DeviceFacts& facts) : facts_(facts) {}
  // False: scratch_bytes() is 0 for every call of the op.
  bool contain(const Op& op);

 private:
  const DeviceFacts& facts_;
  std::unordered_map<const Op*, bool> known_;
};

}  // namespace headroom
