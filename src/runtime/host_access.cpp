// How the host reads and writes tensors of the arenas: in place, or through the device's window.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/executor.h"

namespace headroom {
namespace {

int64_t bytes_of(const TensorView& view) { return view.count() * dtype_bytes(view.dtype); }

}  // namespace

// One half moves tensors, the other is the host's staging space.
std::span<std::byte> Executor::window_half(int which) const {
  const std::span<std::byte> window = device_.host_window();
  HR_CHECK(window.size() >= 128, "there is no window to what the host does not see");
  const size_t half = window.size() / 128 * 64;
  return window.subspan(which == 0 ? 0 : half, half);
}

bool Executor::inside(Tier tier, const std::byte* address) const {
  return base(tier) && address >= base(tier) && address < base(tier) + plan_.arenas().of(tier);
}

// Tensors in the host's arena need no copy, those on disk always do.
bool Executor::host_sees(const TensorView& view) const {
  const auto* const at = view.as<const std::byte>();
  return inside(Tier::host, at) || (device_.host_visible() && !inside(Tier::disk, at));
}

void Executor::copy_now(std::byte* to, const std::byte* from, int64_t bytes) const {
  device_.copy(to, from, bytes, 0);
  device_.synchronize(0);
}

void Executor::write(const TensorView& to, const std::function<void(int64_t, std::span<std::byte>)>& fill) {
  const int64_t total = bytes_of(to);
  if (host_sees(to)) return fill(0, {to.as<std::byte>(), static_cast<size_t>(total)});
  const std::span<std::byte> window = window_half(0);
  for (int64_t at = 0; at < total; at += static_cast<int64_t>(window.size())) {
    const int64_t bytes = std::min(total - at, static_cast<int64_t>(window.size()));
    fill(at / dtype_bytes(to.dtype), window.first(static_cast<size_t>(bytes)));
    copy_now(to.as<std::byte>() + at, window.data(), bytes);
  }
}

void Executor::read(const TensorView& from, const std::function<void(int64_t, std::span<const std::byte>)>& use) const {
  const int64_t total = bytes_of(from);
  if (host_sees(from)) return use(0, {from.as<std::byte>(), static_cast<size_t>(total)});
  const std::span<std::byte> window = window_half(0);
  for (int64_t at = 0; at < total; at += static_cast<int64_t>(window.size())) {
    const int64_t bytes = std::min(total - at, static_cast<int64_t>(window.size()));
    copy_now(window.data(), from.as<std::byte>() + at, bytes);
    use(at / dtype_bytes(from.dtype), window.first(static_cast<size_t>(bytes)));
  }
}

void Executor::put_bytes(const TensorView& to, std::span<const std::byte> bytes) {
  HR_CHECK(static_cast<int64_t>(bytes.size()) == bytes_of(to), "{} bytes for a tensor of {}", bytes.size(),
           bytes_of(to));
  if (host_sees(to)) {
    std::memcpy(to.data, bytes.data(), bytes.size());
    return;
  }
  const std::span<std::byte> window = window_half(0);
  HR_CHECK(bytes.size() <= window.size(), "{} bytes are not a small tensor", bytes.size());
  std::memcpy(window.data(), bytes.data(), bytes.size());
  copy_now(to.as<std::byte>(), window.data(), static_cast<int64_t>(bytes.size()));
}

const std::byte* Executor::get_bytes(const TensorView& from, std::span<std::byte> buffer) const {
  if (host_sees(from)) return from.as<const std::byte>();
  const std::span<std::byte> window = window_half(0);
  HR_CHECK(static_cast<int64_t>(buffer.size()) == bytes_of(from) && buffer.size() <= window.size(),
           "{} bytes for a tensor of {}, through a window of {}", buffer.size(), bytes_of(from), window.size());
  copy_now(window.data(), from.as<std::byte>(), static_cast<int64_t>(buffer.size()));
  std::memcpy(buffer.data(), window.data(), buffer.size());
  return buffer.data();
}

}  // namespace headroom
