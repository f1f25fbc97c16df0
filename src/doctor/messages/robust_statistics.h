// Statistics that a few outliers do not change.
#pragma once

#include <vector>

namespace headroom::doctor {

// 0 for an empty list.
double median(std::vector<double> values);

struct Trend {
  double slope = 0;  // Theil (1950), Sen (1968): the median of all pairwise slopes
  double rise = 0;   // slope times the range of x
  double noise = 0;  // median absolute deviation from the line
  double score = 0;  // z of the Mann-Kendall test: above 3 the chance of a random rise is one in a thousand
};
// x is ascending. Series of more than 300 points are thinned evenly.
Trend theil_sen(const std::vector<double>& x, const std::vector<double>& y);

// Spearman's rank correlation; 0 when either side is constant or fewer than 3 pairs are given.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace headroom::doctor
