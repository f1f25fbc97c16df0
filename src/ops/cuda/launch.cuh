// Launches of device code from the host part of a cuda_*.cu.
#pragma once

#include "ops/cuda/device_language.cuh"

#ifndef __CUDACC_RTC__
#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Queues kernel(arguments...) on the stream; in LaunchMode::load only loads its code. Does nothing if a dimension of
// the grid is zero.
template <typename... P, typename... A>
void launch(void (*kernel)(P...), const Grid& grid, CudaStream stream, A... arguments) {
  if (grid.x < 1 || grid.y < 1 || grid.z < 1) return;
  check_grid(grid);
  const auto* const code = reinterpret_cast<const void*>(kernel);
  if (launch_mode() == LaunchMode::load) return load_kernel(code, grid);
#if defined(__CUDACC__)
  kernel<<<dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)),
           static_cast<unsigned>(grid.block), static_cast<size_t>(grid.shared_bytes), stream>>>(
      static_cast<P>(arguments)...);
  check_cuda(cudaGetLastError(), "a launch");
#else
  cuda_shim::check_loaded(code, grid.shared_bytes);
  cuda_shim::do_or_capture([=] {
    const auto body = [&] { kernel(static_cast<P>(arguments)...); };
    cuda_shim::run_grid({static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
                        static_cast<unsigned>(grid.block), static_cast<size_t>(grid.shared_bytes), body);
  });
#endif
}

// Calls body(T{}) with the narrow element type; `type` is bf16 or f16.
template <typename Body>
void with_narrow_type(FloatType type, const Body& body) {
  if (type == FloatType::f16)
    body(Half{});
  else
    body(Bf16{});
}

// Calls body(T{}) with the element type.
template <typename Body>
void with_float_type(FloatType type, const Body& body) {
  if (type == FloatType::f32)
    body(float{});
  else
    with_narrow_type(type, body);
}

// Calls body(T{}, U{}) with two element types, which are never both narrow types.
template <typename Body>
void with_float_types(FloatType first, FloatType second, const Body& body) {
  if (first == FloatType::f32)
    with_float_type(second, [&](auto b) { body(float{}, b); });
  else if (second == FloatType::f32)
    with_narrow_type(first, [&](auto a) { body(a, float{}); });
  else
    with_narrow_type(first, [&](auto both) { body(both, both); });
}

// Calls body(T{}, R{}) with the types of a product's operands and of its result, which is f32 or the operands' type.
template <typename Body>
void with_product_types(FloatType operand, FloatType result, const Body& body) {
  if (operand == FloatType::f32)
    body(float{}, float{});
  else if (result == FloatType::f32)
    with_narrow_type(operand, [&](auto zero) { body(zero, float{}); });
  else
    with_narrow_type(operand, [&](auto zero) { body(zero, zero); });
}

}  // namespace headroom::cuda
#endif
