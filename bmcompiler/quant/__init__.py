"""What calibration needs: samples, histograms, choice of thresholds, tables in three formats."""
