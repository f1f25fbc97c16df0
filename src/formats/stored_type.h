// The element types that a safetensors file stores. Raw bytes only: conversion between them belongs to the kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

enum class StoredType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

// Bytes of one element.
int64_t stored_type_bytes(StoredType type);

// The name in a safetensors header: "F32", "BF16", "BOOL".
std::string_view stored_type_name(StoredType type);

// The type of that name; empty if headroom does not know it.
std::optional<StoredType> stored_type_from_name(std::string_view name);

}  // namespace headroom
