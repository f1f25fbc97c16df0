#include "ops/linear_cross_entropy/cpu_slice_products.h"

#include <algorithm>

namespace headroom {

std::string SliceProducts::prepare(MatmulMaker make, const DeviceFacts& facts, int64_t workspace) {
  std::string refusal;
  const auto take = [&](std::unique_ptr<Matmul>& to, const MatmulSpec& spec) {
    MatmulOffer offer = make(spec, facts, workspace);
    to = std::move(offer.matmul);
    if (!to && refusal.empty()) refusal = offer.refusal;
  };
  each_slice_size(shape_, slices_, [&](const LossSlices& size) {
    Products products;
    products.size = size;
    take(products.logits, slice_logits_product(shape_, dtype_, size));
    if (options_.gradient) take(products.dx_first, slice_dx_product(shape_, dtype_, size, false));
    if (options_.gradient) take(products.dx_adding, slice_dx_product(shape_, dtype_, size, true));
    if (options_.weight_carried) take(products.dw_first, slice_dw_product(shape_, dtype_, size, false));
    if (options_.trains) take(products.dw_adding, slice_dw_product(shape_, dtype_, size, true));
    products_.push_back(std::move(products));
  });
  return refusal;
}

LossRows SliceProducts::logits_of(const SliceOperands& operands) const {
  of(operands).logits->run({operands.x, operands.weight, operands.logits, operands.bias, nullptr, operands.workspace});
  LossRows rows;
  rows.logits = operands.logits;
  rows.rows = operands.rows;
  rows.vocabulary = operands.entries;
  rows.targets = operands.targets;
  rows.first_row = operands.first_row;
  rows.gradient = options_.gradient;
  rows.dtype = dtype_;
  rows.scale = operands.scale;
  rows.softcap = options_.softcap;
  return rows;
}

void SliceProducts::add_dx(const SliceOperands& operands, float* dx, bool adds) const {
  const Matmul& product = adds ? *of(operands).dx_adding : *of(operands).dx_first;
  product.run({operands.logits, operands.weight, dx, nullptr, dx, operands.workspace});
}

void SliceProducts::add_dw(const SliceOperands& operands, float* dw, bool adds) const {
  const Matmul& product = adds ? *of(operands).dw_adding : *of(operands).dw_first;
  product.run({operands.logits, operands.x, dw, nullptr, dw, operands.workspace});
}

const SliceProducts::Products& SliceProducts::of(const SliceOperands& operands) const {
  return *std::find_if(products_.begin(), products_.end(), [&](const Products& products) {
    return products.size.rows == operands.rows && products.size.entries == operands.entries;
  });
}

}  // namespace headroom
