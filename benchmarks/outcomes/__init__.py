"""Yes or no: how quickly a region of probability is found, beside AEPsych."""
