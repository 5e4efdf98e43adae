"""What can be learnt from a log of a deployed policy?"""
