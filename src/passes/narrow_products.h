// Products in a narrow type, bf16 or f16, with fp32 sums: the common part of the mixed precisions.
#pragma once

#include <map>
#include <string_view>

#include "passes/pass.h"

namespace headroom {

// Rewrites the named program's region: operands of products become `narrow`, and results that only products and
// elementwise ops read are stored in it.
void narrow_products(Graph& graph, RegionId region, DType narrow);

// Lets ops that can round weights themselves read them in fp32 (Op::rounded_inputs): no narrow copies are kept.
void round_in_products(Graph& graph, RegionId region);

// Replaces the casts of persistent weights in the region by persistent narrow values (role parameter, named
// "<weight>#bf16" or "<weight>#f16") that the program "load" fills and the update refreshes. Returns copy -> weight.
std::map<ValueId, ValueId> keep_weight_copies(Graph& graph, RegionId region);

// Whether a persistent value of that name is such a copy.
bool is_weight_copy(std::string_view name);

}  // namespace headroom
