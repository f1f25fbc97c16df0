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

void SliceProducts::write_logits(const LossRows& rows, const SliceOperands& operands) const {
  of(rows).logits->run({operands.x, operands.weight, rows.logits, operands.bias, nullptr, operands.workspace});
}

void SliceProducts::add_dx(const LossRows& rows, const SliceOperands& operands, float* dx, bool adds) const {
  const Matmul& product = adds ? *of(rows).dx_adding : *of(rows).dx_first;
  product.run({rows.logits, operands.weight, dx, nullptr, dx, operands.workspace});
}

void SliceProducts::add_dw(const LossRows& rows, const SliceOperands& operands, float* dw, bool adds) const {
  const Matmul& product = adds ? *of(rows).dw_adding : *of(rows).dw_first;
  product.run({rows.logits, operands.x, dw, nullptr, dw, operands.workspace});
}

const SliceProducts::Products& SliceProducts::of(const LossRows& rows) const {
  return *std::find_if(products_.begin(), products_.end(), [&](const Products& products) {
    return products.size.rows == rows.rows && products.size.entries == rows.vocabulary;
  });
}

}  // namespace headroom
