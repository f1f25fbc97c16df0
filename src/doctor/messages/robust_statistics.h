// Statistics that a few wild values cannot move.
#pragma once

#include <vector>

namespace headroom::doctor {

// Of an empty list 0.
double median(std::vector<double> values);

struct Trend {
  double slope = 0;  // Theil (1950), Sen (1968): the median of all pairwise slopes
  double rise = 0;   // slope over the whole range of x
  double noise = 0;  // median absolute deviation from the line
  double score = 0;  // Mann and Kendall's z: above 3 a rise by chance is one in a thousand
};
// x ascending. Longer series are thinned evenly to 300 points.
Trend theil_sen(const std::vector<double>& x, const std::vector<double>& y);

// Spearman's rank correlation; 0 when either side is constant or fewer than 3 pairs are given.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace headroom::doctor
